"""Answers as models give them, and what is read in them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.model.reply import AnswerToken
from pathnav.model.yes_no import Reading, read_yes_no

STATED = [
    ("Yes 73", True, 0.73),
    ("No 12", False, 0.12),
    ("No, 12%.", False, 0.12),
    ("**Yes** 85", True, 0.85),
    ("Yes, 85/100", True, 0.85),
    ("Yes — 85", True, 0.85),
    ("Yes: 85 because the nuclei crowd", True, 0.85),
    ("Yes\n\n85", True, 0.85),
    ("Yes 85 The tile shows sheets of cells", True, 0.85),
    ("Answer: No (0.15)", False, 0.15),
    ('{"answer": "Yes", "suspicion": 85}', True, 0.85),
    ('{"suspicion": 85, "answer": "Yes"}', True, 0.85),
    ('```json\n{"answer": "No", "confidence": 0.2}\n```', False, 0.2),
    ("I see dense nuclei.\nFinal answer: Yes\nConfidence: 90", True, 0.9),
    ("I think\nNo 20\nbecause it is fat", False, 0.2),
    ("Yes, I am 85% sure", True, 0.85),
    ("No, with a suspicion score of 15", False, 0.15),
    ("No obvious necrosis. Final answer: Yes 70", True, 0.7),
    ("<think>No, or no?</think>Yes 60", True, 0.6),
    ("no opening tag</think>\nYes 60", True, 0.6),
    ("Yes or No? No 10", False, 0.1),
    ("\\boxed{Yes} 85", True, 0.85),
    ("1. Yes 85", True, 0.85),
    ("Yes 0.9", True, 0.9),
    ("Yes 0.5%", True, 0.005),
    ("No 0.", False, 0.0),
    ("Yes 100.", True, 1.0),
    ("73", True, 0.73),
    ("49%", False, 0.49),
    ("Suspicion: 12", False, 0.12),
]
BARE = [
    ("Yes", True),
    ("no.", False),
    ("YES!", True),
    ("The answer is no.", False),
    ("No evidence of tumour.", False),
    ("Yes 150", True),
    ("Yes -5", True),
    ("Yes 70-80", True),
    ("Yes 8/10", True),
    ("Yes, 3 mitoses are seen", True),
    ("Yes. At 40x the nuclei are large", True),
    ("No 40x", False),
    ("Yes 20 µm", True),
    ("Yes 0.25 mm", True),
    ("Yes 512 px", True),
]
NEITHER = [
    "",
    "There is no evidence of tumour.",
    "Normal tissue.",
    "Nothing to see.",
    "I cannot answer.",
    "Yes or No",
    "Yes/No",
    "<think>Yes 4",
    "Yes\nNo\nwhich?\nperhaps"[4:].replace("No", "Hm"),
    "Tumour:\nYes\nNecrosis:\nNo",
    "It measures 73 by 12.",
]


@pytest.mark.parametrize(("text", "yes", "confidence"), STATED)
def test_a_stated_number_is_the_confidence_whatever_the_word(text: str, yes: bool, confidence: float) -> None:
    assert read_yes_no(text) == Reading(yes, confidence, "stated", round(100 * confidence, 6))


@pytest.mark.parametrize(("text", "yes"), BARE)
def test_a_word_without_a_usable_number_is_one_or_nought(text: str, yes: bool) -> None:
    assert read_yes_no(text) == Reading(yes, float(yes), "word")


@pytest.mark.parametrize("text", NEITHER)
def test_what_is_no_verdict_is_unparsed(text: str) -> None:
    assert read_yes_no(text) == Reading(None, None, "unparsed")


def token(text: str, p: float, **others: float) -> AnswerToken:
    return AnswerToken(text, math.log(p), tuple((name, math.log(value)) for name, value in others.items()))


def test_variants_are_summed_and_the_sampled_token_counts_once() -> None:
    first = AnswerToken(
        "Yes", math.log(0.5), tuple((t, math.log(p)) for t, p in [("Yes", 0.5), ("ĠYES", 0.1), ("▁no", 0.2)])
    )
    reading = read_yes_no("Yes 73", [first])
    assert reading == Reading(True, 0.75, "logprobs", 73.0, 0.8)


def test_a_sampled_token_outside_the_list_counts_too() -> None:
    assert read_yes_no("No", [token("No", 0.2, Yes=0.6)]).confidence == 0.75


def test_blanks_quotes_and_marks_before_the_word_are_passed_over() -> None:
    tokens = [token(blank, 0.9, Yes=0.1) for blank in ('"', "Ċ", "**", "▁", " \n")] + [token('"No"', 0.9, Yes=0.1)]
    assert read_yes_no('"No" 12', tokens) == Reading(False, 0.1, "logprobs", 12.0, 1.0)


@pytest.mark.parametrize(
    "tokens",
    [
        [token("The", 0.6, Yes=0.2, No=0.2)],  # most of the mass is elsewhere
        [token("Yes", 0.9)],  # nothing to compare with
        [token("No", 0.9, Yes=0.1)],  # of a thought that is not in the text
    ],
)
def test_log_probabilities_that_cannot_tell_give_way_to_the_text(tokens: list[AnswerToken]) -> None:
    reading = read_yes_no("Yes 73", tokens)
    assert (reading.yes, reading.confidence, reading.source) == (True, 0.73, "stated")


def test_the_beginning_of_another_word_is_no_no() -> None:
    assert read_yes_no("Normal", [token("No", 0.9, Yes=0.1)]).source == "unparsed"


SCRAPS = st.lists(
    st.sampled_from(["Yes", "No", "yes or no", "<think>", "</think>", " ", "\n", ":", "answer", "is", "85", "0.5", "%"])
    | st.text(max_size=8)
).map("".join)
TOKENS = st.builds(
    AnswerToken,
    st.sampled_from(["Yes", " no", "▁", "x"]) | st.text(max_size=4),
    st.floats(-1e6, 0),
    st.lists(st.tuples(st.sampled_from(["yes", "NO", "x"]), st.floats(-1e6, 0)), max_size=4).map(tuple),
)


@given(SCRAPS, st.lists(TOKENS, max_size=4))
def test_reading_never_fails_and_is_consistent(text: str, tokens: list[AnswerToken]) -> None:
    reading = read_yes_no(text, tokens)
    assert (reading.yes is None) == (reading.confidence is None) == (reading.source == "unparsed")
    assert reading.confidence is None or 0 <= reading.confidence <= 1
    assert reading.stated is None or 0 <= reading.stated <= 100
    if reading.source == "logprobs":
        assert reading.yes == (reading.confidence is not None and reading.confidence >= 0.5)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", ["*", "yes ", "answer: ", "<think>", "\n", "the final ", "9", "confidence ", "{[("])
def test_long_answers_are_read_at_once(piece: str) -> None:
    read_yes_no(piece * 100_000)


@pytest.mark.parametrize(
    ("text", "yes", "confidence"),
    [
        ("the answer is no longer clear", None, None),
        ("If the answer is yes, I give a number.", None, None),
        ("Yes and no.", None, None),
        ("<|begin_of_box|>Yes 85<|end_of_box|>", True, 0.85),
        ("<answer>No 4</answer>", False, 0.04),
        ("$\\boxed{\\text{No}}$", False, 0.0),
        ('{"tumour": true, "confidence": "90%"}', True, 0.9),
        ('```json\n{"answer": "No", "suspicion": 5}\n```', False, 0.05),
        ("A: Yes 3", True, 0.03),
        ("Suspicious: Yes", True, 1.0),
        ("Tumor suspicion: No, 5", False, 0.05),
        ("YES!!! 99", True, 0.99),
        ("Yes,85", True, 0.85),
        ("Yes | 85", True, 0.85),
        ("My final answer is **Yes** with 80", True, 0.8),
        ("Tumour suspicion (0-100): 65", True, 0.65),
        ("Probability of tumour: 0.9", True, 0.9),
        ("The probability of tumour is 10%", False, 0.1),
    ],
)
def test_answers_of_real_templates_are_read(text: str, yes: bool | None, confidence: float | None) -> None:
    found = read_yes_no(text)
    assert (found.yes, found.confidence) == (yes, confidence)
