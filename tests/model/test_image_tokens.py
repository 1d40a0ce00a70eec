"""Estimates of tokens: what an image takes, and how a conversation that is sent again and again grows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.model.image_tokens import Growth, conversation_tokens, image_tokens, input_tokens, text_tokens

GROWTHS = st.builds(
    Growth,
    start=st.integers(0, 500),
    per_turn=st.integers(0, 500),
    per_image=st.integers(0, 2000),
    images=st.integers(1, 20),
    images_live=st.none() | st.integers(1, 20),
)


def test_an_image_takes_its_pixels_over_the_pixels_of_a_token() -> None:
    assert image_tokens(1024, 1024) == 1399
    assert image_tokens(1024, 1024, 28 * 28) == 1338
    assert image_tokens(1, 1) == 1


def test_a_text_takes_a_token_every_four_characters() -> None:
    assert [text_tokens(characters) for characters in (0, 1, 4, 5)] == [0, 1, 1, 2]


@pytest.mark.parametrize("context", [8_192, 16_384, 24_576])
def test_twenty_looks_of_1024_px_overflow_a_small_context(context: int) -> None:
    growth = Growth(start=1000, per_turn=100, per_image=image_tokens(1024, 1024), images=21)
    assert conversation_tokens(growth, 21) > context


@given(growth=GROWTHS, turns=st.integers(0, 40))
def test_the_input_is_the_sum_of_all_requests(growth: Growth, turns: int) -> None:
    shown = 0
    text = growth.start
    requests = []
    for _ in range(turns):
        shown = min(shown + 1, growth.images)
        live = shown if growth.images_live is None else min(shown, growth.images_live)
        requests.append(text + live * growth.per_image)
        text += growth.per_turn
    assert input_tokens(growth, turns) == sum(requests)
    assert conversation_tokens(growth, turns) == (requests[-1] + growth.per_turn if turns else 0)


@given(growth=GROWTHS, turns=st.integers(1, 40))
def test_fewer_live_images_never_cost_more(growth: Growth, turns: int) -> None:
    one = Growth(growth.start, growth.per_turn, growth.per_image, growth.images, images_live=1)
    assert input_tokens(one, turns) <= input_tokens(growth, turns)
