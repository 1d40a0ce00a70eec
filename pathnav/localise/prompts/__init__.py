"""What a model is told in Mode A, word for word; the texts are the files beside this one."""

import hashlib
from functools import cache
from importlib.resources import files

from pathnav.cohort.query import Query

PROMPT_VERSION = "mode-a-1"
_NAMES = ("system", "task", "reminder", "forced", "again")


@cache
def text(name: str) -> str:
    """Return one of the prompt texts."""
    return files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8").strip()


def task(query: Query, budget: int) -> str:
    """Return the task of a query."""
    return text("task").format(
        handle=query.handle,
        organ=query.organ or "not stated",
        magnification=query.magnification,
        finding=query.finding,
        region=query.region.as_list(),
        target_width=query.target_width,
        target_height=query.target_height,
        budget=budget,
    )


def prompt_hash() -> str:
    """Return the SHA-256 over version and texts; part of an episode's key."""
    joined = "\0".join([PROMPT_VERSION, *(text(name) for name in _NAMES)])
    return hashlib.sha256(joined.encode()).hexdigest()
