"""What a model says to itself is no answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.model.reasoning import answer_start, split_reasoning
from pathnav.model.reply import read_reply
from support.asking import QUESTION, asking
from support.chat_server import say

TAGS = ("think",)


@pytest.mark.parametrize(
    ("text", "answer", "reasoning"),
    [
        ("Yes", "Yes", None),
        ("<think>no tumour?</think>\nYes", "Yes", "no tumour?"),
        ("no tumour?</think>Yes", "Yes", "no tumour?"),
        ("<think>No, the token limit", "", "No, the token limit"),
        ("<think>a</think>Yes<think>b</think>", "Yes", "a\n\nb"),
        ("<think></think>Yes", "Yes", None),
        ("x < y and y > z", "x < y and y > z", None),
        ("<thinking>a</thinking>Yes", "<thinking>a</thinking>Yes", None),
    ],
)
def test_reasoning_is_told_apart_from_the_answer(text: str, answer: str, reasoning: str | None) -> None:
    assert split_reasoning(text, TAGS) == (answer, reasoning)


@given(st.text(alphabet="ab<>/think \n", max_size=60))
def test_no_answer_holds_a_tag_of_reasoning(text: str) -> None:
    answer, _ = split_reasoning(text, TAGS)
    assert "<think>" not in answer or "</think>" not in answer.partition("<think>")[2]
    assert split_reasoning(text.replace("<", "(").replace(">", ")"), TAGS)[1] is None


@pytest.mark.parametrize(
    ("tokens", "start"),
    [(["Yes"], 0), (["<think>", "no", "</think>", "\n", "Yes"], 3), (["<", "think", ">No</", "think", ">", "Yes"], 5)],
)
def test_the_answer_begins_behind_the_closing_tag(tokens: list[str], start: int) -> None:
    assert answer_start(tokens, TAGS) == start


def test_log_probabilities_of_reasoning_are_not_those_of_the_answer() -> None:
    content = [{"token": token, "logprob": -1.0} for token in ("<think>", "No", "</think>", "Yes")]
    choice = {"message": {"content": "<think>No</think>Yes"}, "logprobs": {"content": content}}
    reply = read_reply(choice, None, tags=TAGS)
    assert (reply.text, reply.reasoning) == ("Yes", "No")
    assert [token.text for token in reply.logprobs] == ["Yes"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_in_a_field_of_its_own_is_kept(field: str) -> None:
    with asking([say("Yes", message={field: "It looks dense."})]) as (client, _):
        reply = client.ask(QUESTION)
    assert (reply.text, reply.reasoning) == ("Yes", "It looks dense.")
