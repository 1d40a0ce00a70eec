"""What searches need: an annotation of the bench's slide, scorers in a file, a model that is asked about tiles."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pathnav.explore import TileImage, TileScore, TileTree
from pathnav.explore.vlm import VlmScorer
from pathnav.slide.pixels import encode_jpeg
from support.asking import asking
from support.chat_server import Answer, ChatServer, Request
from support.commands import Bench

Answers = Iterable[Answer] | Callable[[Request], Answer]
WORKERS = 6

SCORERS = '''
"""Scorers that a user might have written, well and badly."""

import os

from pathnav.explore import Source, TileScore


class Left:
    """The further left, the surer; notes every tile that it is asked for."""

    version = "1"
    batch_tiles = 8

    def __init__(self, notes=None, sleep_s=0.0):
        self.notes, self.sleep_s = notes, sleep_s

    def score(self, tiles):
        import time

        for tile in tiles:
            time.sleep(self.sleep_s)
            if self.notes:
                with open(self.notes, "a") as file:
                    file.write(tile.name + "\\n")
            yield TileScore(True, 1 / (1 + tile.box.x), Source.COMPUTED)


class Fails:
    def score(self, tiles):
        raise ZeroDivisionError("no tissue")


class Short:
    def score(self, tiles):
        return []


class Nothing:
    """No scorer at all."""


class OracleScorer:
    """Calls itself what the control is called."""

    name = "oracle"

    def accept_truth(self, overlaps):
        raise AssertionError("the truth was handed to a plug-in")

    def score(self, tiles):
        return [TileScore(True, 0.5, Source.COMPUTED) for tile in tiles]
'''


def polygon(x: float, y: float, width: float, height: float, name: str = "tumor") -> dict[str, Any]:
    """Return a QuPath annotation of a rectangle."""
    ring = [[x, y], [x + width, y], [x + width, y + height], [x, y + height], [x, y]]
    return {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": {"objectType": "annotation", "classification": {"name": name}},
    }


def write_annotation(path: Path, *features: dict[str, Any]) -> Path:
    """Write a FeatureCollection and return its path."""
    path.write_text(json.dumps({"type": "FeatureCollection", "features": list(features)}), encoding="utf-8")
    return path


class Exploring:
    """A bench with an annotation and scorers."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.annotation = write_annotation(
            bench.folder / "a.geojson", polygon(100, 100, 700, 500), polygon(1500, 1200, 300, 300, "stroma")
        )
        (bench.folder / "scorers.py").write_text(SCORERS, encoding="utf-8")

    def scorer(self, name: str) -> str:
        """Return the specification of a scorer of the file."""
        return f"{self.bench.folder / 'scorers.py'}:{name}"

    def plain(self, *more: object) -> tuple[object, ...]:
        """Return an `explore` without annotation: 4, 64 and some 800 tiles of 64 px, all of them shown."""
        return ("explore", self.bench.slide, "--tile-px", 64, "--min-tissue", 0, *more)

    def annotated(self, *more: object) -> tuple[object, ...]:
        """Return an `explore` with the annotation."""
        return self.plain("--annotation", self.annotation, "--tumour-class", "tumor", *more)


@contextmanager
def scoring(answers: Answers, workers: int = WORKERS, **options: Any) -> Iterator[tuple[VlmScorer, ChatServer]]:
    """Give a scorer with its model, and the server that answers."""
    with asking(answers, answered=True) as (client, server):
        scorer = VlmScorer(**options)
        scorer.accept_chat(client, workers)
        yield scorer, server


def some(tree: TileTree, count: int = 30, level: int = 2) -> Sequence[TileImage]:
    """Return the first tiles of a level."""
    return tree.images(level, np.arange(count))


def distinct(tree: TileTree, count: int) -> Sequence[TileImage]:
    """Tiles in the middle of the slide, no two of which look alike as blank ones do."""
    columns = tree.grid(2).columns
    numbers = [row * columns + column for row in range(5, 17) for column in range(5, 17)]
    images = {sent_jpeg(image): image for image in tree.images(2, np.array(numbers))}
    assert len(images) >= count
    return list(images.values())[:count]


def sent_jpeg(image: TileImage, quality: int = 90) -> str:
    """Return the SHA-256 of the image that is sent of a tile."""
    return hashlib.sha256(encode_jpeg(image.read(), quality)).hexdigest()


def detail(score: TileScore) -> dict[str, Any]:
    """Return what the record keeps of a score, which JSON can hold."""
    assert score.detail is not None
    json.dumps(score.detail)
    return dict(score.detail)
