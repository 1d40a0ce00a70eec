"""A slide made of two stains, drawn by the test, that a conversation can look at: for the stub's tests.

::

    slide = PaintedSlide(8000, 8000)
    slide.stain(Box(5000, 2000, 1024, 1024), haematoxylin=0.5)
    with Game(slide, "dense infiltrate", target=(1024, 1024), budget=10) as game:
        report = game.play()            # the arguments of finish_and_report
        game.looks                      # every box that was asked for
"""

import io
import json
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pathnav.geometry import Box
from pathnav.model import STUB_MODEL, ChatClient, ChatSettings, Reply, StubServer, image_part, text_part

HAEMATOXYLIN = (0.65, 0.70, 0.29)  # optical density of red, green and blue
EOSIN = (0.07, 0.99, 0.11)
VIEW_PX = 512
CELL_PX = 16  # level-0 pixels that one painted cell covers

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("get_image_info", "extract_roi", "finish_and_report")
]


def stained(haematoxylin: NDArray[np.float64], eosin: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the colour of stain densities, uint8 RGB, shape (height_px, width_px, 3)."""
    density = haematoxylin[..., None] * np.array(HAEMATOXYLIN) + eosin[..., None] * np.array(EOSIN)
    return np.asarray(np.clip(256 * 10**-density - 1, 0, 255).round(), np.uint8)


def jpeg(rgb: NDArray[np.uint8]) -> bytes:
    """Return the pixels as JPEG."""
    buffer = io.BytesIO()
    Image.fromarray(rgb).save(buffer, "JPEG", quality=90, subsampling=0)
    return buffer.getvalue()


class PaintedSlide:
    """Pale eosin everywhere; the rest is painted on."""

    def __init__(self, width: int, height: int) -> None:
        self.box = Box(0, 0, width, height)
        self._haematoxylin = np.full((height // CELL_PX, width // CELL_PX), 0.05)
        self._eosin = np.full_like(self._haematoxylin, 0.2)

    def stain(self, box: Box, *, haematoxylin: float = 0.05, eosin: float = 0.2) -> None:
        """Give a box other densities."""
        x, y, right, bottom = (round(n / CELL_PX) for n in (box.x, box.y, box.right, box.bottom))
        self._haematoxylin[y:bottom, x:right] = haematoxylin
        self._eosin[y:bottom, x:right] = eosin

    def view(self, box: Box) -> tuple[bytes, tuple[int, int]]:
        """Return the JPEG of a box and its size in px, the long side `VIEW_PX`."""
        longest = max(box.width, box.height)
        width_px, height_px = (max(1, round(side * VIEW_PX / longest)) for side in (box.width, box.height))
        columns = ((box.x + (np.arange(width_px) + 0.5) * box.width / width_px) / CELL_PX).astype(int)
        rows = ((box.y + (np.arange(height_px) + 0.5) * box.height / height_px) / CELL_PX).astype(int)
        inside = np.ix_(rows.clip(0, len(self._eosin) - 1), columns.clip(0, self._eosin.shape[1] - 1))
        return jpeg(stained(self._haematoxylin[inside], self._eosin[inside])), (width_px, height_px)


class Game:
    """One conversation with the stub over HTTP; plays the part of pathnav's environment.

    Args:
        slide: What is really there.
        finding: The text.
        target: Width and height looked for.
        budget: ROIs.
        overview: What the first image shows, if not the truth.
        images: Whether images are sent, or only their captions.
    """

    def __init__(
        self,
        slide: PaintedSlide,
        finding: str,
        *,
        target: tuple[float, float],
        budget: int,
        overview: PaintedSlide | None = None,
        images: bool = True,
    ) -> None:
        self.slide, self.budget, self.images = slide, budget, images
        self.looks: list[Box] = []
        self.replies: list[Reply] = []
        self._server = StubServer()
        brief = (
            f"Slide: slide-1\nMagnification: 10x\nFinding: {finding}\n"
            f"Search region (level-0 px): {slide.box.as_list()}\n"
            f"Target size (level-0 px): {target[0]:g} x {target[1]:g}\nROI budget: {budget}"
        )
        first = [text_part(brief), *self._shown("Overview", overview or slide, slide.box)]
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You look with tools."},
            {"role": "user", "content": first},
        ]

    def __enter__(self) -> "Game":
        self._server.start()
        self._chat = ChatClient(ChatSettings(base_url=self._server.base_url, model=STUB_MODEL))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._chat.close()
        self._server.close()

    def ask(self, *, tools: Any = TOOLS, required: str | None = None) -> Reply:
        """Return the stub's next reply without acting on it."""
        reply = self._chat.ask(self.messages, tools, required)
        self.replies.append(reply)
        return reply

    def act(self, reply: Reply) -> None:
        """Take the reply into the conversation and show what its call asks for."""
        (call,) = reply.calls
        box = Box(*(call.arguments[name] for name in "xywh")) if call.arguments else Box(0, 0, 0, 0)
        self.looks.append(box)
        facts = {"box": box.as_list(), "rois_left": self.budget - len(self.looks)}
        self.answer(reply, json.dumps(facts), self._shown("extract_roi", self.slide, box))

    def answer(self, reply: Reply, text: str, parts: list[dict[str, Any]]) -> None:
        """Take the reply into the conversation with the tool's text and what follows in a user message."""
        (call,) = reply.calls
        self.messages += [
            {"role": "assistant", "content": reply.text, "tool_calls": [call.as_message_part()]},
            {"role": "tool", "tool_call_id": call.id, "content": text},
        ]
        if parts:
            self.messages.append({"role": "user", "content": parts})

    def play(self) -> dict[str, Any]:
        """Return the arguments of the report; looks are shown until then, or until the budget is spent."""
        for _ in range(self.budget + 1):
            spent = len(self.looks) == self.budget
            reply = self.ask(tools=TOOLS[2:] if spent else TOOLS, required="finish_and_report" if spent else None)
            if reply.calls[0].name == "finish_and_report":
                return reply.calls[0].arguments or {}
            self.act(reply)
        raise AssertionError("no report")

    def _shown(self, what: str, slide: PaintedSlide, box: Box) -> list[dict[str, Any]]:
        picture, (width_px, height_px) = slide.view(box)
        caption = text_part(f"{what}: {width_px} x {height_px} px at 2x, level-0 box {box.as_list()}")
        return [caption, image_part(picture)] if self.images else [caption]
