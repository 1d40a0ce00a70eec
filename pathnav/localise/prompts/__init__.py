"""What a model is told in Mode A, word for word; the texts are the files beside this one."""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from pathnav.cohort.query import Query
from pathnav.geometry import Box
from pathnav.localise.coordinates import Coordinates, Shown
from pathnav.model.profile import BoxForm, Frame

PROMPT_VERSION = "mode-a-2"
HINTS_VERSION = "hints-1"
_NAMES = ("system", "task", "reminder", "forced", "again", *(f"frame_{frame}" for frame in Frame))
_CORNERS = {
    BoxForm.XYWH: "with its top-left corner at (x, y)",
    BoxForm.XYXY: "with its top-left and its bottom-right corner",
}


@cache
def text(name: str) -> str:
    """Return one of the prompt texts."""
    return files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8").strip()


def system(coordinates: Coordinates) -> str:
    """Return the system's text, with the model's own coordinates explained."""
    corner = _CORNERS[coordinates.form]
    explained = text(f"frame_{coordinates.frame}").format(order=coordinates.order, corner=corner)
    return text("system").format(coordinates=explained)


def task(query: Query, budget: int, coordinates: Coordinates, overview: Shown) -> str:
    """Return the task of a query, boxes and sizes as the model writes them."""
    width, height = coordinates.size((query.target_width, query.target_height), overview)
    return text("task").format(
        handle=query.handle,
        organ=query.organ or "not stated",
        magnification=query.magnification,
        finding=query.finding,
        target_width=width,
        target_height=height,
        budget=budget,
        **where(query, coordinates, overview),
    )


def hints(boxes: Sequence[Box], coordinates: Coordinates, overview: Shown) -> str:
    """Return what a model is told of windows that were proposed, boxes as it writes them."""
    written = [box.as_list() if coordinates.are_plain else coordinates.to_model(box, overview) for box in boxes]
    lines = [f"{place}. {box}" for place, box in enumerate(written, 1)]
    return text("hints").format(units=coordinates.units(), boxes="\n".join(lines))


def where(query: Query, coordinates: Coordinates, overview: Shown) -> dict[str, Any]:
    """Return what texts say of the search region: `order`, `units` and `region`."""
    region = query.region.as_list() if coordinates.are_plain else coordinates.to_model(query.region, overview)
    return {"order": coordinates.order, "units": coordinates.units(), "region": region}


def prompt_hash(with_hints: bool = False) -> str:
    """Return the SHA-256 over version and texts; part of an episode's key.

    Args:
        with_hints: Whether the text on hints is among them; without it the hash is that of episodes without hints.
    """
    more = [HINTS_VERSION, text("hints")] if with_hints else []
    joined = "\0".join([PROMPT_VERSION, *(text(name) for name in _NAMES), *more])
    return hashlib.sha256(joined.encode()).hexdigest()
