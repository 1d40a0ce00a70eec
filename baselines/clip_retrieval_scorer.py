"""`clip-retrieval`: yes to every tile; the nearer its image is to tumour than to other tissue in words, the surer.

An image-text model embeds the tile, what tumour is called and what other tissue is called. The confidence is a softmax
over both cosines, sharp enough to tell tiles apart, and not so sharp that all of tumour is 1.0000. Embeddings are kept
apart from scores, so that other words for the same tiles show the model no image.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathnav.explore import Source, TileImage, TileScore
from pathnav.retrieval import EmbeddingStore, ImageTextModel, ModelChoice, contrast_of, load

READERS = max(1, min(8, (os.cpu_count() or 1) - 1))
SCORE_DIGITS = 6
"""A probability is rounded: sums of 512 products in float32 differ by 1e-7 between machines."""


class ClipRetrievalScorer:
    """Order tiles by how much nearer they are to tumour than to other tissue.

    Args:
        architecture: An architecture of open_clip, `hf-hub:OWNER/NAME`, `local-dir:FOLDER`, or a short name.
        checkpoint: A file of weights, or a tag of open_clip.
        device: `auto`, `cpu`, `cuda`, `cuda:N` or `mps`.
        precision: `auto`, `fp32`, `bf16` or `fp16`.
        batch: Images encoded at a time; found by memory where left out.
        tumour: What is looked for, one text or several; default: pathnav's own.
        not_tumour: What it is told from, likewise.

    Raises:
        ConfigError: If an option has no legal value.
        PluginError: If torch or open_clip is not installed.
    """

    name = "clip-retrieval"
    version = "1"
    batch_tiles = 256

    def __init__(
        self,
        architecture: str,
        checkpoint: str | None = None,
        device: str = "auto",
        precision: str = "auto",
        batch: int | None = None,
        *,
        tumour: str | Sequence[str] | None = None,
        not_tumour: str | Sequence[str] | None = None,
    ) -> None:
        self._choice = ModelChoice(architecture, checkpoint, device, precision, batch)
        self._contrast = contrast_of(tumour, not_tumour)
        self._store = EmbeddingStore()

    def accept_embeddings(self, store: EmbeddingStore) -> None:
        """Take the store that embeddings are kept in; else they go with the scorer."""
        self._store = store

    @property
    def settings(self) -> dict[str, Any]:
        """What can change a score: the weights' hash in place of their path, and no device."""
        return {"model": dict(self._model.identity), "prompts": self._contrast.as_json}

    @property
    def _model(self) -> ImageTextModel:
        return load(self._choice)

    @property
    def embedding_costs(self) -> dict[str, int] | None:
        """What embeddings of tiles have cost."""
        return self._store.costs

    def score(self, tiles: Sequence[TileImage]) -> Iterable[TileScore]:
        """Return the probability of tumour of each tile."""
        found = (self._probabilities(list(grid)) for _, grid in groupby(tiles, _grid))
        return [TileScore(True, round(share, SCORE_DIGITS), Source.COMPUTED) for some in found for share in some]

    def _probabilities(self, tiles: Sequence[TileImage]) -> list[float]:
        """Return the probabilities of tiles of one grid."""
        model = self._model
        shares: list[float] = self._contrast.probabilities(model, embedded_tiles(tiles, model, self._store)).tolist()
        return shares


def embedded_tiles(tiles: Sequence[TileImage], model: ImageTextModel, store: EmbeddingStore) -> NDArray[np.float32]:
    """Return the embeddings of tiles of one slide and magnification; several threads read those that are new."""
    slide, magnification = _grid(tiles[0])

    def images(missing: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
        with ThreadPoolExecutor(READERS, "pathnav-tiles") as pool:
            for start in range(0, missing.size, READERS):
                places = missing[start : start + READERS]
                fitted = pool.map(lambda place: model.fitted(tiles[place].read()), places.tolist())
                yield places, np.stack(list(fitted))

    return store.embedded(
        np.array([tile.number for tile in tiles], np.int64),
        np.array([tile.box.as_list() for tile in tiles], np.float64),
        images,
        model=model,
        slide=slide,
        grid={"tile_px": tiles[0].tile_px, "magnification": magnification, "side_px": model.side_px},
    )


def _grid(tile: TileImage) -> tuple[str, float]:
    """Return what tiles have in common that share a grid: the slide and the magnification."""
    return tile.name.partition("/")[0], tile.magnification
