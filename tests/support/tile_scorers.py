"""Scorers for tests: each answers from a tile's name, so that two processes agree, and notes what it is asked."""

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pathnav.errors import ModelError
from pathnav.explore import Source, TileImage, TileScore


def answer(image: TileImage) -> TileScore:
    """Return a score that depends on the tile alone: one in eight unparsed, two in three of the others Yes."""
    digest = hashlib.sha256(image.name.encode()).digest()
    if digest[0] % 8 == 0:
        return TileScore.unparsed(requests=2, detail={"text": "well"})
    return TileScore(digest[1] % 3 > 0, digest[2] / 255, Source.STATED)


class Noting:
    """Answers with a list and notes every tile."""

    name = "noting"
    needs_pixels = False
    batch_tiles = 10

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.batches: list[int] = []

    def score(self, tiles: Sequence[TileImage]) -> Iterable[TileScore]:
        self.batches.append(len(tiles))
        self.asked += [image.name for image in tiles]
        return [answer(image) for image in tiles]


class Streaming(Noting):
    """Answers one by one, and loses the endpoint after so many."""

    def __init__(self, lasts: int = 10**9) -> None:
        super().__init__()
        self.lasts = lasts

    def score(self, tiles: Sequence[TileImage]) -> Iterator[TileScore]:
        for image in tiles:
            if len(self.asked) == self.lasts:
                raise ModelError("the endpoint has gone")
            self.asked.append(image.name)
            yield answer(image)


class Logging(Noting):
    """Writes each tile that it has scored as a line of a file; after so many it hangs.

    As a stream it hangs before a tile, with lists before a whole list.
    """

    batch_tiles = 7

    def __init__(self, log: Path, hangs_after: int | None, streams: bool) -> None:
        super().__init__()
        self.log, self.hangs_after, self.streams = log, hangs_after, streams

    def score(self, tiles: Sequence[TileImage]) -> Iterable[TileScore]:
        if self.streams:
            return (self._one(image) for image in tiles)
        self._hang()
        return [self._one(image) for image in tiles]

    def _one(self, image: TileImage) -> TileScore:
        if self.streams:
            self._hang()
        self.asked.append(image.name)
        with self.log.open("a") as file:
            file.write(image.name + "\n")
        return answer(image)

    def _hang(self) -> None:
        if self.hangs_after is not None and len(self.asked) >= self.hangs_after:
            self.log.with_suffix(".hanging").touch()
            time.sleep(600)
