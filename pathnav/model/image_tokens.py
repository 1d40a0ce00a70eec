"""Estimates of what images and conversations cost in tokens; each server counts in its own way.

A text token is taken for 4 characters, an image token for `pixels_per_token` pixels of a profile: 750 by default, so
that an image of 1,024 x 1,024 px is 1,399 tokens and 20 of them overflow a context of 8,192, 16,384 or 24,576 tokens.
"""

import math
from dataclasses import dataclass

CHARACTERS_PER_TOKEN = 4
PIXELS_PER_TOKEN = 750.0


def image_tokens(width_px: int, height_px: int, pixels_per_token: float = PIXELS_PER_TOKEN) -> int:
    """Return about how many tokens an image of so many pixels takes."""
    return math.ceil(width_px * height_px / pixels_per_token)


def text_tokens(characters: int) -> int:
    """Return about how many tokens a text of so many characters takes."""
    return math.ceil(characters / CHARACTERS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Growth:
    """How a conversation grows, turn by turn; what was said and shown is sent again with every request.

    Args:
        start: Tokens of every request: the prompts and the tools on offer.
        per_turn: Tokens that a turn adds: the answer, and the text that it is answered with.
        per_image: Tokens of an image.
        images: Most images there come to be; the first request has one, and a turn adds at most one.
        images_live: Most images in one request, None for all there are.
    """

    start: int
    per_turn: int
    per_image: int
    images: int
    images_live: int | None = None

    def request(self, turn: int) -> int:
        """Return the tokens of the request of a turn, counted from 0."""
        shown = min(1 + turn, self.images)
        if self.images_live is not None:
            shown = min(shown, self.images_live)
        return self.start + turn * self.per_turn + shown * self.per_image


def conversation_tokens(growth: Growth, turns: int) -> int:
    """Return the tokens of a conversation when its last turn is answered: what a model's context must hold."""
    return growth.request(turns - 1) + growth.per_turn if turns else 0


def input_tokens(growth: Growth, turns: int) -> int:
    """Return the tokens of all requests of a conversation; they grow with the square of its turns."""
    return sum(growth.request(turn) for turn in range(turns))
