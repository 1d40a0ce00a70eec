"""The stub's Yes or No."""

import math
from typing import Any

import numpy as np
import pytest

from pathnav.model.parts import image_part, text_part
from pathnav.model.reply import read_reply
from pathnav.model.stub_answers import STUB_MODEL, Stub
from pathnav.model.stub_rules import BadRequest
from pathnav.model.yes_no import read_yes_no
from pathnav.slide.pixels import encode_jpeg

DARK, PALE, WHITE = (90, 60, 140), (230, 170, 200), (255, 255, 255)


def request(colour: tuple[int, int, int], **fields: Any) -> dict[str, Any]:
    jpeg = encode_jpeg(np.full((128, 128, 3), colour, np.uint8), 90)
    content = [text_part("Suspicious? Begin with Yes or No."), image_part(jpeg)]
    return {"model": STUB_MODEL, "messages": [{"role": "user", "content": content}], **fields}


def choice(colour: tuple[int, int, int], **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = Stub().complete(request(colour, **fields))["choices"][0]
    return found


@pytest.mark.parametrize(("colour", "word"), [(DARK, "Yes"), (PALE, "No"), (WHITE, "No")])
def test_dense_tissue_is_a_yes_and_pale_tissue_or_glass_a_no(colour: tuple[int, int, int], word: str) -> None:
    found = choice(colour)
    assert found["message"]["content"].split()[0] == word
    assert found["logprobs"] is None


@pytest.mark.parametrize("colour", [DARK, PALE, WHITE])
def test_log_probabilities_give_the_chance_that_the_number_states(colour: tuple[int, int, int]) -> None:
    reply = read_reply(choice(colour, logprobs=True, top_logprobs=20), None)
    reading = read_yes_no(reply.text, reply.logprobs)
    assert reading.source == "logprobs" and reading.mass == pytest.approx(0.98)
    assert reading.confidence is not None and reading.stated is not None
    assert math.isclose(100 * reading.confidence, reading.stated, abs_tol=0.51)


@pytest.mark.parametrize("fields", [{"top_logprobs": 5}, {"logprobs": True, "top_logprobs": 21}, {"logprobs": 5},
                                    {"logprobs": True, "top_logprobs": -1}])  # fmt: skip
def test_log_probabilities_asked_for_in_a_wrong_way_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match="logprobs"):
        Stub().complete(request(DARK, **fields))


def test_with_tools_on_offer_it_gives_no_verdict() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    assert "not a model" in choice(DARK, tools=[tool])["message"]["content"]
