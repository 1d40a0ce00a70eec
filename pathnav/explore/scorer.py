"""The contract of a scorer: tiles in, for each a yes or no, a confidence and where that came from."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import UnionType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pathnav.errors import PluginError
from pathnav.geometry import Box
from pathnav.settings import canonical_text

DEFAULT_BATCH_TILES = 64
"""Tiles that a scorer is given at a time where it does not say otherwise; a batch is what a crash can lose."""


class Tile(NamedTuple):
    """A tile's place: level 0 is 2.5x, 1 is 10x, 2 is 40x; row and column count in that level's grid."""

    level: int
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class TileImage:
    """A tile as a scorer gets it; nothing in it tells where the tumour is.

    Args:
        name: Names slide, magnification and box; the same in every run, and opaque.
        tile: Its place.
        number: Its place in its level's grid, in reading order.
        box: Its part of the scanned area, in level-0 pixels.
        magnification: 2.5, 10 or 40.
        tissue_share: Share of the box that is tissue; None where no mask can be made of the slide.
        width_px: Width of the part of the image that shows the slide; beyond it the image is white.
        height_px: Height of that part.
        tile_px: Side of the image.
        read: Returns the image, uint8 RGB, shape (tile_px, tile_px, 3); reads and decodes anew at every call, and may
            be called from several threads.
    """

    name: str
    tile: Tile
    number: int
    box: Box
    magnification: float
    tissue_share: float | None
    width_px: int
    height_px: int
    tile_px: int
    read: Callable[[], NDArray[np.uint8]] = field(repr=False, compare=False)


class Source(StrEnum):
    """Where a confidence came from."""

    LOGPROBS = "logprobs"
    STATED = "stated"
    WORD = "word"
    COMPUTED = "computed"
    UNPARSED = "unparsed"


@dataclass(frozen=True, slots=True)
class TileScore:
    """What a scorer says of a tile.

    Args:
        yes: Whether the tile is called suspicious; None if the answer could not be understood, which is not a No.
        confidence: How suspicious it is, in [0, 1], higher is more, also for a No; None if and only if `yes` is.
        source: Where the confidence came from: a model's log-probabilities, a number that it stated, its bare word, a
            computation without a model; or `unparsed`.
        requests: Requests that it took, a second one after an answer that was not understood included.
        detail: What the record should keep besides, as JSON: the answer's text, tokens, the image's hash. Not used.

    Raises:
        ValueError: If these do not go together, or one of them is of another kind. NumPy's numbers are taken.
    """

    yes: bool | None
    confidence: float | None
    source: Source
    requests: int = 1
    detail: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        self._take("yes", bool | np.bool_, bool, "True, False or None")
        self._take("confidence", int | float | np.integer | np.floating, float, "a number or None")
        self._take("requests", int | np.integer, int, "a whole number")
        self._take("source", str, Source, f"one of {', '.join(Source)}")
        absent = [self.yes is None, self.confidence is None, self.source is Source.UNPARSED]
        if any(absent) != all(absent):
            raise ValueError(
                f"an unparsed answer has neither yes nor confidence and any other has both, got yes={self.yes}, "
                f"confidence={self.confidence}, source={self.source}"
            )
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise ValueError(f"a confidence must be in [0, 1], got {self.confidence}")
        if self.requests < 0:
            raise ValueError(f"requests must not be negative, got {self.requests}")

    def _take(self, name: str, kinds: type | UnionType, plain: Callable[[Any], Any], expected: str) -> None:
        """Make a field what SQLite and JSON can hold."""
        value = getattr(self, name)
        if value is None and name in ("yes", "confidence"):
            return
        is_known = isinstance(value, kinds) and (name != "source" or value in set(Source))
        if not is_known or (isinstance(value, bool) and name != "yes"):
            raise ValueError(f"{name} must be {expected}, got {value!r}")
        object.__setattr__(self, name, plain(value))

    @classmethod
    def unparsed(cls, requests: int = 1, detail: Mapping[str, Any] | None = None) -> "TileScore":
        """Return the score of an answer that could not be understood."""
        return cls(None, None, Source.UNPARSED, requests, detail)


@runtime_checkable
class Scorer(Protocol):
    """Anything with `score(tiles)`.

    Optional attributes:

    - `name` (str): what records call it; default: the name of its class.
    - `version` (str): enters the store's key; raise it when the scores change; default `"0"`.
    - `settings` (mapping, JSON): all else that can change a score: prompt hash, model, seed; default: none.
    - `needs_pixels` (bool): it reads the tiles' images; default True.
    - `batch_tiles` (int): the most tiles it is given at a time; default 64.
    - `uses_model` (bool): it asks a chat endpoint; default False.
    - `accept_chat(client, workers)`: where it uses a model, the runner, and only the runner, calls this once before
      `settings` is read and any tile is scored; `client` is a `pathnav.model.ChatClient` that the runner closes,
      `workers` how many threads may read, encode and ask.
    - `accept_embeddings(store)`: the runner calls this with a `pathnav.retrieval.EmbeddingStore` that lies beside the
      scores; for scorers that embed tiles. What `embedding_costs` (mapping, JSON) then says goes into the result.
    - `score_as_ready(tiles)`: an iterator of pairs, a tile's place in `tiles` and its score, in any order, each tile
      once; where there is one, a search calls it in place of `score`. For scorers that ask about many tiles at once:
      an answer is stored when it comes, though an earlier tile still waits for its own. What `ModelError` is raised
      behind has been yielded.
    """

    def score(self, tiles: Sequence[TileImage]) -> Iterable[TileScore]:
        """Return one score per tile, in the order of the tiles.

        A list is stored as a whole when it comes; an iterator's scores are stored one by one as they come, so that a
        crash loses only what was under way. A tile's score must not depend on what else is asked for, nor when.

        Raises:
            ModelError: If a tile got no answer; it is asked for again when the run is continued.
        """


@dataclass(frozen=True, slots=True)
class ScorerConfiguration:
    """All of a scorer that can change a score: equal configurations share their scores.

    Args:
        name: What records call the scorer.
        version: The version it declares.
        settings: Its settings, as JSON.
        tile_px: Side of the images that it is shown.
        code: SHA-256 of a user's own file, None for an installed scorer.
    """

    name: str
    version: str
    settings: Mapping[str, Any]
    tile_px: int
    code: str | None = None

    @classmethod
    def of(cls, scorer: Scorer, tile_px: int, code: str | None = None) -> "ScorerConfiguration":
        """Return a scorer's configuration.

        Args:
            scorer: The scorer, ready to score.
            tile_px: Side of the images that it is shown.
            code: SHA-256 of the file that a user's plug-in was loaded from.

        Raises:
            PluginError: If its settings have no JSON form.
        """
        name = str(getattr(scorer, "name", type(scorer).__name__))
        try:
            settings = getattr(scorer, "settings", {})
        except Exception as error:
            raise PluginError(f"scorer {name!r} cannot tell its settings: {type(error).__name__}: {error}") from error
        if not isinstance(settings, Mapping):
            raise PluginError(f"scorer {name!r} must have a mapping as its settings, got {settings!r}")
        found = cls(name, str(getattr(scorer, "version", "0")), dict(settings), tile_px, code)
        found.as_text()
        return found

    def as_text(self) -> str:
        """Return the one JSON text of the configuration: sorted keys, no blanks, whole floats as integers.

        Raises:
            PluginError: If a setting has no JSON form.
        """
        document = {
            "name": self.name,
            "version": self.version,
            "settings": self.settings,
            "tile_px": self.tile_px,
            "code": self.code,
        }
        try:
            return canonical_text(document)
        except (TypeError, ValueError) as error:
            raise PluginError(f"scorer {self.name!r} has a setting that has no JSON form: {error}") from error

    @property
    def key(self) -> str:
        """The SHA-256 of the configuration's text, 64 hexadecimal digits."""
        return hashlib.sha256(self.as_text().encode()).hexdigest()


def batch_tiles(scorer: Scorer) -> int:
    """Return the most tiles that a scorer is given at a time.

    Raises:
        PluginError: If it asks for less than one.
    """
    count = getattr(scorer, "batch_tiles", DEFAULT_BATCH_TILES)
    if not isinstance(count, int) or count < 1:
        raise PluginError(f"a scorer's batch_tiles must be a whole number of at least 1, got {count!r}")
    return count


def needs_pixels(scorer: Scorer) -> bool:
    """Return whether a scorer reads the tiles' images."""
    return bool(getattr(scorer, "needs_pixels", True))
