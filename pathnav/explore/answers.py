"""What a scorer answers, held against its contract before any of it is used or stored."""

import json
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

from pathnav.errors import ModelError, PluginError, RecordError, SlideError
from pathnav.explore.scorer import Scorer, TileImage, TileScore

Placed = tuple[int, TileScore]
"""A tile's place in the batch, and its score."""

_NOT_THE_SCORERS = (SlideError, ModelError, RecordError, PluginError, MemoryError)
"""Failures that pass through a scorer as they are: slide, endpoint and disk, and what it says itself of its set-up."""


def answers(scorer: Scorer, images: Sequence[TileImage]) -> Generator[list[Placed]]:
    """Yield the scores of some tiles as they come: a list as a whole, an iterator's one by one.

    Args:
        scorer: Who is asked; by `score_as_ready` where it has that.
        images: The tiles.

    Raises:
        PluginError: If the scorer breaks its contract, or raises an error of its own; names it and its file, and says
            what was expected and what came.
        ModelError: If a tile got no answer.
        SlideError: If a tile cannot be read.
    """
    name = label(scorer)
    as_ready: Callable[[Sequence[TileImage]], Any] | None = getattr(scorer, "score_as_ready", None)
    with _blamed(name):
        answer = (as_ready or scorer.score)(images)
    if not isinstance(answer, Iterable):
        raise _expected(name, f"returned {_shown(answer)}, which holds no scores")
    if as_ready is None and isinstance(answer, Sequence):
        _check_count(name, len(answer), len(images))
        part = [(place, _checked(name, score)) for place, score in enumerate(answer)]
        if part:
            yield part
        return
    yield from ([one] for one in _one_by_one(name, answer, len(images), has_places=as_ready is not None))


def label(scorer: object) -> str:
    """Return how a scorer is named in a sentence: its name, and the file that its class stands in."""
    cls = type(scorer)
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return f"scorer {getattr(scorer, 'name', cls.__name__)!r}" + (f" ({file})" if file else "")


def _one_by_one(name: str, answer: Iterable[Any], count: int, *, has_places: bool) -> Iterator[Placed]:
    """Yield what an iterator gives, each tile once."""
    missing = dict.fromkeys(range(count))
    given = 0
    with closing(_steps(name, answer)) as steps:
        for one in steps:
            place, score = _pair(name, one) if has_places else (given, one)
            given += 1
            if given > count:
                _check_count(name, given, count)
            if place not in missing:
                fault = "twice" if 0 <= place < count else "that none has"
                raise _expected(name, f"gave place {place} of {count} tiles, {fault}")
            yield place, _checked(name, score)
            del missing[place]
    _check_count(name, given, count)


def _steps(name: str, answer: Iterable[Any]) -> Generator[Any]:
    """Yield what an iterator gives; what it raises of its own names it. It is closed with this one."""
    with _blamed(name):
        iterator = iter(answer)
    try:
        while True:
            with _blamed(name):
                try:
                    one = next(iterator)
                except StopIteration:
                    return
            yield one
    finally:
        close = getattr(iterator, "close", None)
        if callable(close):
            close()


def _pair(name: str, one: Any) -> tuple[int, Any]:
    if isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], int | np.integer):
        return int(one[0]), one[1]
    raise _broken(name, f"must yield pairs of a tile's place and its TileScore, got {_shown(one)}")


def _checked(name: str, score: Any) -> TileScore:
    """Return what is a score and can be stored."""
    if not isinstance(score, TileScore):
        raise _broken(name, f"must give a TileScore for each tile, got {_shown(score)}")
    if score.detail is not None:
        if not isinstance(score.detail, Mapping):
            raise _broken(name, f"must give a mapping as the detail of a score, got {_shown(score.detail)}")
        try:
            json.dumps(score.detail, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise _broken(name, f"must give a detail that has a JSON form: {error}") from error
    return score


def _check_count(name: str, given: int, count: int) -> None:
    if given != count:
        raise _expected(name, f"gave {given} scores for {count} tiles")


def _expected(name: str, came: str) -> PluginError:
    return _broken(name, f"must give a TileScore for each tile, but {came}")


def _broken(name: str, fault: str) -> PluginError:
    return PluginError(f"{name} {fault}", remedy="mend the scorer")


def _shown(value: object) -> str:
    """Return what came, in a word or two."""
    return "None" if value is None else type(value).__name__


@contextmanager
def _blamed(name: str) -> Iterator[None]:
    """Turn an error of the scorer's own into one that names it."""
    try:
        yield
    except _NOT_THE_SCORERS:
        raise
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())
        raise _expected(name, f"raised {type(error).__name__}: {said}".rstrip(": ")) from error
