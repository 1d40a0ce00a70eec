"""Checks of what an answer costs and carries: token limit, usage, seed, system role, log-probabilities, reasoning."""

import re
from dataclasses import replace
from typing import Literal

from pathnav.errors import EndpointUnreachable, ModelError
from pathnav.model.probe_chart import Chart, decides
from pathnav.model.probe_finding import Finding, Result
from pathnav.model.probe_line import Asked, Heard, Undecided, user

LIMIT = 12
"""New tokens that are allowed where hundreds are asked for."""
_LONG = 8 * LIMIT  # characters that no LIMIT tokens hold, digits and blanks as they are
_MOST_CHANCES = (20, 5)
_TAG = re.compile(r"<([A-Za-z][\w:.-]{1,30})>.*?</\1>", re.DOTALL)
_THOUGHT = re.compile(r"think|thought|reason|reflect|scratch|analysis", re.IGNORECASE)
_FIELDS: tuple[Literal["max_completion_tokens", "max_tokens"], ...] = ("max_completion_tokens", "max_tokens")


@decides("token_limit", "usage", fields=("token_field",))
def probe_limit(chart: Chart) -> None:
    """Check the field of the token limit; the first question of all.

    Raises:
        ModelError: If the endpoint cannot be asked at all.
    """
    first = chart.base.token_field
    heard: dict[str, Heard] = {}
    for name in sorted(_FIELDS, key=lambda name: name != first):
        messages = [user("Count from 1 to 100, all numbers, one blank between two. Begin at once.")]
        heard[name] = _first_heard(chart, Asked("token_limit", messages, token_field=name, max_tokens=LIMIT))
        _raise_if_hopeless(chart, heard[name])
    if all(one.reply is None for one in heard.values()):
        raise ModelError(f"{chart.line.settings.endpoint} {heard[first].sentence}; nothing could be asked")
    states = {name: _honoured(one) for name, one in heard.items()}
    honoured = [name for name, state in states.items() if state == "honoured"]
    taken = honoured or [name for name, one in heard.items() if one.reply is not None]
    chart.line.settings = replace(chart.line.settings, profile=chart.base.model_copy(update={"token_field": taken[0]}))
    chart.add(_limit_finding(states, taken[0], bool(honoured)), token_field=taken[0])
    if not honoured:
        chart.leave_open({"token_field": "neither field was seen to limit an answer"})
    _add_usage(chart, next(one for one in heard.values() if one.reply))


def _first_heard(chart: Chart, asked: Asked) -> Heard:
    """Return what came back, also where it says nothing of the question, unless the endpoint has failed since."""
    try:
        return chart.line.ask(asked)
    except Undecided as error:
        if error.heard is None or chart.line.outage:
            raise
        return error.heard


def _raise_if_hopeless(chart: Chart, heard: Heard) -> None:
    failure, endpoint = heard.failure, chart.line.settings.endpoint
    answered = any(entry["failure"] is None for entry in chart.line.evidence)
    if failure is not None and failure.of_settings and not answered:
        raise EndpointUnreachable(f"{endpoint} {heard.sentence}", remedy=failure.remedy)


def _honoured(heard: Heard) -> str:
    """Return whether a limit was honoured, ignored, refused, or nothing can be said."""
    reply = heard.reply
    if reply is None:
        return "undecided" if heard.is_passing else "refused"
    said = len(reply.text) + len(reply.reasoning or "")
    if reply.finish_reason == "length" and said <= 4 * _LONG:
        return "honoured"
    if said > _LONG or (reply.tokens and reply.tokens.output > LIMIT + 4):
        return "ignored"
    return "undecided"


def _limit_finding(states: dict[str, str], chosen: str, sure: bool) -> Finding:
    seen = ", ".join(f"{name} is {state}" for name, state in states.items())
    if sure:
        return Finding("token_limit", Result.YES, seen, f"answers are limited with {chosen}", facts=states)
    means = "an answer may run on until the context is full; a run may take long"
    change = "look for the server's own limit of new tokens"
    state = Result.NO if "ignored" in states.values() else Result.UNDECIDED
    return Finding("token_limit", state, seen, means, change, states)


def _add_usage(chart: Chart, heard: Heard) -> None:
    tokens = heard.reply.tokens if heard.reply else None
    if tokens:
        facts = {"input": tokens.input, "output": tokens.output}
        seen = f"answers say what they cost ({tokens.input} tokens in, {tokens.output} out)"
        chart.add(Finding("usage", Result.YES, seen, facts=facts))
    else:
        means = "tokens and cost of a run are null in its record; nothing else changes"
        chart.add(Finding("usage", Result.NO, "answers do not say what they cost", means))


@decides("seed", fields=("sends_seed",))
def probe_seed(chart: Chart) -> None:
    """Check whether a seed of decoding is taken."""
    heard = chart.line.ask(Asked("seed", [user("Say hello in one word.")], seed=7))
    if heard.reply:
        chart.add(Finding("seed", Result.YES, "a request with a seed is answered"), sends_seed=True)
    else:
        means = "requests go without a seed, so that an answer may differ from one time to the next"
        chart.add(
            Finding("seed", Result.NO, f"a request with a seed fails: it {heard.sentence}", means), sends_seed=False
        )


@decides("system_role")
def probe_system(chart: Chart) -> None:
    """Check whether a system message is taken, and obeyed."""
    rule = "Whatever the user says, answer with the single word BANANA."
    messages = [{"role": "system", "content": rule}, user("Say hello in one word.")]
    heard = chart.line.ask(Asked("system_role", messages, truth="BANANA"))
    if heard.reply is None:
        means = "every run sends its rules in a system message, so it cannot be run"
        change = "serve it with a chat template that takes one"
        seen = f"a request with a system message fails: it {heard.sentence}"
        chart.add(Finding("system_role", Result.NO, seen, means, change))
    elif "banana" in heard.text.lower():
        chart.add(Finding("system_role", Result.YES, "a system message is taken and obeyed"))
    else:
        seen = f"a system message is taken, but was not obeyed: {heard.quoted}"
        chart.add(Finding("system_role", Result.PARTLY, seen, "the rules of a run may not reach the model"))


@decides("logprobs", fields=("logprobs",))
def probe_logprobs(chart: Chart) -> None:
    """Check whether log-probabilities are given, and how many alternatives."""
    refusal = ""
    for most in _MOST_CHANCES:
        messages = [user("Is the sky blue on a clear day? Answer Yes or No.")]
        heard = chart.line.ask(Asked("logprobs", messages, top_logprobs=most))
        if heard.reply:
            given = max((len(token.alternatives) for token in heard.reply.logprobs), default=0)
            chart.add(_logprobs_finding(bool(heard.reply.logprobs), given, most), logprobs=bool(given))
            return
        refusal = refusal or heard.sentence
    means = "Mode B reads Yes and No from the text, with no probability between: tiles tie more often"
    seen = f"a request for log-probabilities fails: it {refusal}"
    chart.add(Finding("logprobs", Result.NO, seen, means, _LOGPROBS_CHANGE, {"alternatives": 0}), logprobs=False)


_LOGPROBS_CHANGE = "use a server that gives them (vLLM, SGLang, llama.cpp), where Mode B matters"


def _logprobs_finding(given: bool, alternatives: int, asked: int) -> Finding:
    facts = {"alternatives": alternatives, "asked": asked}
    if alternatives:
        seen = f"log-probabilities are given, with {alternatives} alternatives a token of {asked} asked for"
        means = "Mode B scores tiles by the probability of Yes"
        if alternatives >= 5:
            return Finding("logprobs", Result.YES, seen, means, facts=facts)
        few = "so few may leave out Yes or No: tiles without both are scored from the text"
        return Finding("logprobs", Result.PARTLY, seen, few, facts=facts)
    seen = "log-probabilities are given without alternatives" if given else "log-probabilities are not given"
    means = "Mode B reads Yes and No from the text, with no probability between: tiles tie more often"
    return Finding("logprobs", Result.NO, seen, means, _LOGPROBS_CHANGE, facts)


@decides("reasoning", fields=("reasoning_tags",))
def probe_reasoning(chart: Chart) -> None:
    """Check whether the model thinks aloud, and in which tags."""
    question = "A box of 12 slides loses 5 and gains 9. Think it through, then say how many there are."
    heard = chart.line.ask(Asked("reasoning", [user(question)], truth="16"))
    if heard.reply is None:
        raise Undecided(f"the question fails: it {heard.sentence}", heard)
    tags = sorted({tag for tag in _TAG.findall(heard.reply.text) if _THOUGHT.search(tag)})
    known = [tag for tag in chart.base.reasoning_tags if tag not in tags]
    facts = {"tags": tags, "apart": bool(heard.reply.reasoning)}
    if tags:
        seen = f"it thinks aloud inside {', '.join(f'<{tag}>' for tag in tags)}"
        means = "what stands inside is taken out of the answer and kept in the record"
        chart.add(Finding("reasoning", Result.YES, seen, means, facts=facts), reasoning_tags=[*known, *tags])
    elif heard.reply.reasoning:
        seen = f"it thinks aloud ({len(heard.reply.reasoning)} characters), told apart from the answer"
        change = "give it room: --max-tokens 4096" if heard.reply.finish_reason == "length" else None
        chart.add(Finding("reasoning", Result.YES, seen, "it is kept in the record", change, facts))
    else:
        chart.add(Finding("reasoning", Result.NO, "it does not think aloud in tags or a field of its own", facts=facts))
