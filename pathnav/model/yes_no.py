"""Read a Yes or No out of a model's answer, and how sure it is; pure text work, no network.

The confidence is how likely a Yes is, also where the answer is No. It comes from the first word's log-probabilities
where a server gives them, else from the number from 0 to 100 that the answer states, else from the bare word.
See docs/protocol.md, section 3.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pathnav.model.reply import AnswerToken

LEAST_MASS = 0.5  # below it most of the probability is on neither word, and their ratio says nothing
MOST_CHARACTERS = 100_000
_PLACES = 6  # beyond them servers differ from one call to the next
_BLANK = " \t\r\n\v\f\u00a0\u0120\u2581\u010a*_#>~`\"'“”‘’«»-•"  # U+0120, U+2581 and U+010A stand for blanks in tokens
_STOPS = ".,:;!?)"
_UNSURE = r"(?!\s*(?:/|\||or\b|and\b)\s*[\"']?(?:yes|no)\b)"  # "Yes or No" is the question again
_WORD = rf"\b(?P<word>yes|no)(?!\w|['’-][^\W\d_]){_UNSURE}(?!\s+(?:doubt|question|problem|longer|one)\b)"
_MARKS = r"[\s\"'`*_#>~“”‘’«»\[\](){}•]{0,40}"
_LABEL = r"(?:(?:the|my|final|short|overall)\s{1,3}){0,3}(?:answer|verdict|response|conclusion|classification|result)"
_TOPIC = r"(?:(?:tumou?r|cancer|malignancy)\s{1,3})?(?:suspicio(?:n|us)|tumou?r|cancer|malignan\w{1,3}|a)"
_WRAPPER = re.compile(r"<\|[^<>|]{1,40}\|>|</?answer>|\$", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\{(?:\\text\{)?([^{}]{0,200})\}{1,2}")
_CONDITION = re.compile(r"\b(?:if|whether|when|unless|suppose)\b[^.\n]{0,20}$", re.IGNORECASE)
_NUMBER_ALONE = re.compile(r"\s*\d{1,3}(?:\.\d{1,6})?\s*(?:%|/\s*100)?\s*")
_FENCED = re.compile(r"^```(?:json)?\s*|\s*```$", re.IGNORECASE)
_THOUGHT = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_NAMED = rf"{_LABEL}{_MARKS}(?::|=|-|\bis\b){_MARKS}|{_TOPIC}[ \t\"'`*_]{{0,9}}[:=][ \t\"'`*_]{{0,9}}"
_START = re.compile(
    rf"(?:json\b|\d[.)]\s|\\boxed|yes\s*(?:/|\||or)\s*no\b\W{{0,10}})?{_MARKS}(?:{_NAMED})?{_WORD}",
    re.IGNORECASE,
)
_DETERMINER = re.compile(r"no[ \t]+[^\W\d_]", re.IGNORECASE)
_AFTER_VERDICT = r"(?=[\s\"'`*_)\]}”’]{0,10}(?:$|[\d.,;:!?(}\n–—-]|with\b|because\b|since\b|as\b|and\b))"
_VERDICT = re.compile(rf"\b{_LABEL}{_MARKS}(?::|=|\bis\b|\bwould be\b){_MARKS}{_WORD}{_AFTER_VERDICT}", re.IGNORECASE)
_NUMBER = (
    r"(?<![\w./])(?<!\d,)(?P<number>\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})(?![\d]|[.,]\d|\s*[-–—]\s*\d|e[-+]?\d)"
    r"(?P<unit>\s*(?:%|percent\b|/\s*100\b(?!\.\d)|out of 100\b))?(?!\s*/)(?!\w)"
)
_NO_COUNT = r"(?!\s*(?:x|×|[uµμnmc]m|microns?|px|pixels?)\b)(?!\s*×)"  # 40x and 0.25 um are no confidence
_SENTENCE = r"(?![ \t]+(?!(?:because|since|as|due|given|with|based|and|but)\b)[a-zµμ])"  # nor is "3 mitoses"
_GRADE = r"(?:suspicion|confidence|score|probability|likelihood|certainty|rating|number)"
_NEXT_TO = re.compile(
    rf"(?![^\d\n]{{0,40}}(?<=\s)[-−]\d)[\s\"'`*_(){{}}\[\].,:;=!?|–—-]{{0,40}}?(?:(?:with|at)\s{{1,3}})?{_NUMBER}{_NO_COUNT}{_SENTENCE}"
)
_GRADED = re.compile(
    rf"\b(?i:{_GRADE})(?i:\s{{1,3}}(?:level|score|of|is|rating)){{0,3}}[\s\"'`*_()\[\]:=–—]{{0,20}}?{_NUMBER}{_NO_COUNT}"
)
_SURE = re.compile(rf"{_NUMBER}(?i:\s{{1,3}}(?:sure|certain|confiden\w+|suspicio\w+|likel\w+|probab\w+))")
_OF_WHAT = r"(?:\s{1,3}(?:of|for|that)\s{1,3}[^\W\d_][^\d\n:=]{0,40}?)?"
_ALONE = re.compile(
    rf"{_MARKS}(?:(?i:(?:the\s{{1,3}})?(?:tumou?r\s{{1,3}})?(?:{_GRADE}|{_LABEL}){_OF_WHAT})(?:\s*\(0\s*[-–]\s*100\))?"
    rf"{_MARKS}(?:[:=]|\bis\b)?{_MARKS})?{_NUMBER}{_MARKS}[.!]?{_MARKS}"
)
_WHOLE_LINE = re.compile(
    rf"{_MARKS}(?:{_LABEL}{_MARKS}[:=]?)?{_MARKS}{_WORD}(?P<rest>[^^\W\d]?.{{0,40}})", re.IGNORECASE
)
_REST_OF_LINE = re.compile(r"[\W\d]*(?:percent|out of 100)?[\W]*", re.IGNORECASE)

Origin = Literal["logprobs", "stated", "word", "unparsed"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer says.

    Args:
        yes: None if it could not be understood.
        confidence: How likely a Yes is, in [0, 1], also for a No; None if and only if `yes` is.
        source: Where the confidence came from.
        stated: The number from 0 to 100 that the answer states, also where log-probabilities decided.
        mass: The probability of Yes and No together at the first word; None where the server gave none.
    """

    yes: bool | None
    confidence: float | None
    source: Origin
    stated: float | None = None
    mass: float | None = None


def read_yes_no(text: str, first_tokens: Sequence[AnswerToken] = ()) -> Reading:
    """Return what an answer says; never fails.

    Args:
        text: The answer.
        first_tokens: `Reply.logprobs`.
    """
    answer = _unwrapped(_without_thoughts(text[:MOST_CHARACTERS]))
    word, stated = _said(answer)
    chances = _chances(answer, first_tokens)
    mass = None if chances is None else min(1.0, round(sum(chances), _PLACES))
    if chances is not None and sum(chances) >= LEAST_MASS:
        p = round(chances[0] / sum(chances), _PLACES)
        return Reading(p >= 0.5, p, "logprobs", stated, mass)
    if word is None and stated is None:
        return Reading(None, None, "unparsed", None, mass)
    if stated is None:
        return Reading(word, float(bool(word)), "word", None, mass)
    yes = stated >= 50 if word is None else word
    return Reading(yes, round(stated / 100, _PLACES), "stated", stated, mass)


def _without_thoughts(text: str) -> str:
    """Return what follows the last thought, or precedes it where nothing follows; nothing if it never ends."""
    marks = list(_THOUGHT.finditer(text))
    if not marks:
        return text.strip()
    if not marks[-1].group(1):
        return ""
    return text[marks[-1].end() :].strip() or text[: marks[0].start()].strip()


def _unwrapped(answer: str) -> str:
    """Return an answer without the marks that templates put around it; a JSON object as its word and number."""
    plain = _WRAPPER.sub(" ", _BOXED.sub(r" \1 ", answer)).strip()
    try:
        found = json.loads(_FENCED.sub("", plain))
    except (ValueError, RecursionError):
        return plain
    if not isinstance(found, dict):
        return plain
    words = [value for value in map(_yes_or_no, found.values()) if value]
    numbers = [number for number in map(_number_text, found.values()) if number]
    return " ".join([*words[:1], *numbers[:1]]) if words or numbers else plain


def _yes_or_no(value: object) -> str | None:
    """Return a JSON value's word, None where it has none."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return value if isinstance(value, str) and value.strip().lower() in ("yes", "no") else None


def _number_text(value: object) -> str | None:
    """Return a JSON value's number as text, None where it has none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return str(value)[:20]
    return (
        value
        if isinstance(value, str) and re.fullmatch(r"\s*\d{1,3}(?:\.\d{1,6})?\s*(?:%|/\s*100)?\s*", value)
        else None
    )


def _said(answer: str) -> tuple[bool | None, float | None]:
    """Return the word and the number of an answer; a number alone without a word."""
    found = _word(answer)
    if found is None:
        alone = _ALONE.fullmatch(answer)
        return None, _value(alone) if alone else None
    rest = answer[found.end("word") :]
    return found.group("word").lower() == "yes", _stated(rest, answer)


def _word(answer: str) -> re.Match[str] | None:
    """Return where the answer says Yes or No: at its start, as a verdict, or on a line of its own."""
    start = _START.match(answer, len(answer) - len(answer.lstrip(_BLANK)))
    verdict = None
    for found in _VERDICT.finditer(answer):
        if not _CONDITION.search(answer[max(0, found.start() - 40) : found.start()]):
            verdict = found  # the last one is final
    if start is not None and not (verdict and _DETERMINER.match(answer, start.start("word"))):
        return start  # "No nuclei are atypical ... Final answer: Yes" does not begin with its answer
    return verdict or _own_line(answer)


def _own_line(answer: str) -> re.Match[str] | None:
    """Return the first line that holds no more than Yes or No and a number; None where two such lines disagree."""
    found = []
    for start in (0, *(mark.end() for mark in re.finditer(r"\n", answer))):
        line = _WHOLE_LINE.match(answer, start)
        if line and _REST_OF_LINE.fullmatch(line.group("rest")):
            found.append(line)
    words = {line.group("word").lower() for line in found}
    return found[0] if len(words) == 1 else None


def _stated(rest: str, answer: str) -> float | None:
    """Return the number from 0 to 100 beside the word, else the one that is called a suspicion or the like."""
    beside = _NEXT_TO.match(rest)
    candidates = [beside, _GRADED.search(rest), _SURE.search(rest), _GRADED.search(answer)]
    values = (_value(match) for match in candidates if match is not None)
    return next((value for value in values if value is not None), None)


def _value(match: re.Match[str]) -> float | None:
    """Return a number on the scale from 0 to 100, None where it is outside; 0.85 without a unit is 85."""
    text, unit = match.group("number"), match.group("unit")
    value = float(text)
    if "." in text and value <= 1 and not unit:
        value *= 100
    return round(value, _PLACES) if 0 <= value <= 100 else None


def _chances(answer: str, tokens: Sequence[AnswerToken]) -> tuple[float, float] | None:
    """Return the probabilities of Yes and No as the first word; None where the tokens cannot tell."""
    first = next((token for token in tokens if _bare(token.text)), None)
    if first is None:
        return None
    likely = {first.text: first.logprob, **dict(first.alternatives)}
    if len(likely) < 2:  # a lone token's rival is unknown, and a ratio of one is always 1
        return None
    sampled = _bare(first.text)
    if sampled in ("yes", "no") and not re.match(rf"[\W_]*{sampled}(?![^\W\d_])", answer, re.IGNORECASE):
        return None  # the token began another word ("No" + "rmal"), or a thought that the server has taken out
    sums = {"yes": 0.0, "no": 0.0}
    for text, logprob in likely.items():
        if (word := _bare(text)) in sums:
            sums[word] += math.exp(min(0.0, logprob))
    return sums["yes"], sums["no"]


def _bare(token: str) -> str:
    """Return a token in lower case without quotes, marks and stops."""
    return token.strip(_BLANK).rstrip(_STOPS).strip(_BLANK).lower()
