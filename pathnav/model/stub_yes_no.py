"""The stub's Yes or No about one image: a fixed logistic of its haematoxylin density, with log-probabilities."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pathnav.model.stub_conversation import texts_of
from pathnav.model.stub_vision import Sight

MIDDLE = 0.13
"""Density of tissue at which Yes and No are equally likely: near the median of a phantom's tiles at every level."""

WIDTH = 0.05  # a phantom's tiles lie between 0.03 and 0.63, so that few chances round to 0 or 1
_DECIDED = 0.98  # the rest goes to further words, so that a reader has to divide
_FURTHER = ("Maybe", "Perhaps", "Possibly", "Unclear")
_BLUE_SKY = 0.97  # the only thing that it knows without looking
_LEAST = 1e-9
_ASKS = re.compile(r"\byes or no\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the stub says of an image.

    Args:
        p: How likely a Yes is.
    """

    p: float

    @property
    def text(self) -> str:
        """The answer: the word, and p in percent."""
        return f"{self._word}{self._number}"

    def logprobs(self, top: int) -> dict[str, Any]:
        """Return the answer's tokens in OpenAI's form, each with so many alternatives."""
        words = {"Yes": self.p * _DECIDED, "No": (1 - self.p) * _DECIDED}
        words |= dict.fromkeys(_FURTHER, (1 - _DECIDED) / len(_FURTHER))
        content = [_token(self._word, words, top), _token(self._number, {self._number: 1.0}, top)]
        return {"content": content, "refusal": None}

    @property
    def _word(self) -> str:
        return "Yes" if self.p >= 0.5 else "No"

    @property
    def _number(self) -> str:
        return f" {round(100 * self.p)}"


def verdict_on(body: Mapping[str, Any], images: Sequence[Sight]) -> Verdict | None:
    """Return the verdict on the last image, without one on the sky; None with tools, or where none is asked for."""
    asked = [text for text in texts_of(body["messages"], "user") if _ASKS.search(text)]
    if body.get("tools") or not asked:
        return None
    if not images:
        return Verdict(_BLUE_SKY) if "sky blue" in asked[-1] else None
    tissue = float(images[-1].tissue.sum())
    density = float(images[-1].haematoxylin.sum()) / tissue if tissue else 0.0
    return Verdict(1 / (1 + math.exp((MIDDLE - density) / WIDTH)))


def _token(chosen: str, chances: Mapping[str, float], top: int) -> dict[str, Any]:
    ranked = sorted(chances, key=lambda word: (-chances[word], word))[:top]
    return {**_entry(chosen, chances), "top_logprobs": [_entry(word, chances) for word in ranked]}


def _entry(word: str, chances: Mapping[str, float]) -> dict[str, Any]:
    return {"token": word, "logprob": math.log(max(chances[word], _LEAST)), "bytes": list(word.encode())}
