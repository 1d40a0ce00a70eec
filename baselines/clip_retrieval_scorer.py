"""`clip-retrieval`: yes to every tile; the nearer its image is to tumour than to other tissue in words, the surer.

An image-text model embeds the tile, what tumour is called and what other tissue is called. The confidence is a softmax
over both cosines, sharp enough to tell tiles apart, and not so sharp that all of tumour is 1.0000. Embeddings are kept
apart from scores, so that other words for the same tiles show the model no image.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from pathnav.explore import Source, TileImage, TileScore
from pathnav.retrieval import EmbeddingStore, ImageTextModel, ModelChoice, load
from pathnav.retrieval.contrast import contrast_of, probabilities
from pathnav.retrieval.tiles import embedded_tiles

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
        self.embedding_costs: dict[str, int] | None = None

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

    def score(self, tiles: Sequence[TileImage]) -> Iterable[TileScore]:
        """Return the probability of tumour of each tile."""
        found = (self._probabilities(list(grid)) for _, grid in groupby(tiles, _grid))
        return [TileScore(True, confidence, Source.COMPUTED) for some in found for confidence in some]

    def _probabilities(self, tiles: Sequence[TileImage]) -> list[float]:
        """Return the probabilities of tiles of one grid."""
        found = embedded_tiles(tiles, self._model, self._store)
        before = self.embedding_costs or {"encoded": 0, "kept_from_before": 0}
        self.embedding_costs = {
            "encoded": before["encoded"] + found.encoded,
            "kept_from_before": before["kept_from_before"] + found.found,
            "store_bytes": self._store.disk_bytes,
        }
        shares = probabilities(self._model, found.vectors, self._contrast)
        return [round(share, SCORE_DIGITS) for share in shares.tolist()]


def _grid(tile: TileImage) -> tuple[str, float]:
    """Return what tiles have in common that share a grid: the slide and the magnification."""
    return tile.name.partition("/")[0], tile.magnification
