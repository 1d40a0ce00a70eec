"""`clip-retrieval`: the window of the target's size whose image is nearest to the finding's text.

Windows of the target's size stand half a window apart over the search region; those without tissue are left out. An
image-text model embeds each of them and the finding, and the window with the highest cosine is reported. With the
weights of CONCH this is the paper's "CONCH retrieval". The best windows that overlap little are recorded, and are what
the agent proposes to others.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.protocol import MIN_TISSUE
from pathnav.errors import ConfigError
from pathnav.geometry import Box
from pathnav.localise import Environment, Proposal
from pathnav.retrieval import ImageTextModel, ModelChoice, WindowGrid, finding_vector, load, peaks
from pathnav.retrieval.prompts import FINDING_TEMPLATES, VERSION
from pathnav.slide import TissueMask, TissueStatus

PEAKS = 10
"""Windows that the record keeps."""

COARSE_FACTOR = 2
KEPT_SHARE, LEAST_KEPT = 0.1, 4
"""Coarse to fine: windows of twice the side, at half the magnification; the best tenth, at least four, is refined."""

LEAST_ROOM = 3 * COARSE_FACTOR
"""In regions of fewer windows side by side larger ones spare nothing: there every other row and column goes first."""

SCORE_DIGITS = 6
"""A cosine is rounded: sums of 512 products in float32 differ by 1e-7 between machines."""


class ClipRetrieval:
    """Report the window whose image is nearest to the finding.

    Args:
        architecture: An architecture of open_clip, `hf-hub:OWNER/NAME`, `local-dir:FOLDER`, or a short name.
        checkpoint: A file of weights, or a tag of open_clip.
        device: `auto`, `cpu`, `cuda`, `cuda:N` or `mps`.
        precision: `auto`, `fp32`, `bf16` or `fp16`.
        batch: Images encoded at a time; found by memory where left out.
        min_tissue: Least share of tissue of a window that is looked at.
        coarse_to_fine: Whether a coarser look comes first, and only what is near the best of it is compared.

    Raises:
        ConfigError: If an option has no legal value.
        PluginError: If torch or open_clip is not installed.
    """

    name = "clip-retrieval"
    version = "1"
    unbudgeted = True

    def __init__(
        self,
        architecture: str,
        checkpoint: str | None = None,
        device: str = "auto",
        precision: str = "auto",
        batch: int | None = None,
        *,
        min_tissue: float = MIN_TISSUE,
        coarse_to_fine: bool = False,
    ) -> None:
        self._choice = ModelChoice(architecture, checkpoint, device, precision, batch)
        if not 0 <= min_tissue <= 1:
            raise ConfigError(f"min_tissue must be in [0, 1], got {min_tissue}")
        self._min_tissue, self._is_coarse_to_fine = min_tissue, bool(coarse_to_fine)

    @property
    def settings(self) -> dict[str, Any]:
        """What can change an answer: the weights' hash in place of their path, and no device."""
        return {
            "model": dict(self._model.identity),
            "prompts": {"version": VERSION, "templates": list(FINDING_TEMPLATES)},
            "min_tissue": self._min_tissue,
            "coarse_to_fine": self._is_coarse_to_fine,
        }

    @property
    def _model(self) -> ImageTextModel:
        return load(self._choice)

    def run(self, environment: Environment) -> None:
        """Report the best window."""
        best = self.propose(environment, PEAKS)[0]
        environment.report(best.box, conclusion=f"The window nearest to the finding (cosine {best.score:.4f}).")

    def propose(self, environment: Environment, count: int) -> Sequence[Proposal]:
        """Return the best windows that overlap little, best first."""
        search = _Search(environment, self._model, self._min_tissue)
        numbers = search.refined() if self._is_coarse_to_fine else search.fine.tissue
        scores = search.scores(search.fine, numbers)
        order = environment.rng.permutation(numbers.size)  # equals are decided by the seed
        boxes = search.fine.grid.boxes(numbers)[order]
        best = peaks(boxes, scores[order], max(count, PEAKS))
        found = [Proposal(Box.from_list(boxes[place].tolist()), float(scores[order][place])) for place in best]
        search.record(found)
        return found[:count]


class _Windows:
    """A grid of windows, and which of them hold tissue."""

    def __init__(self, grid: WindowGrid, mask: TissueMask, min_tissue: float) -> None:
        self.grid = grid
        held = mask.shares_of(grid.boxes()) >= min_tissue
        self.with_tissue = int(held.sum())
        if mask.status is TissueStatus.NOT_BRIGHTFIELD or not held.any():
            held = np.ones(grid.count, np.bool_)
        self.tissue: NDArray[np.int64] = np.flatnonzero(held).astype(np.int64)
        self.scores = np.full(grid.count, np.nan)
        """Cosines with the finding; NaN where a window has not been compared."""


class _Search:
    """One retrieval: the finding's embedding, and what was compared with it."""

    def __init__(self, environment: Environment, model: ImageTextModel, min_tissue: float) -> None:
        self._environment, self._model, self._min_tissue = environment, model, min_tissue
        self._finding = finding_vector(model, environment.query.finding).astype(np.float64)
        self._mask = environment.survey.tissue_mask()
        self.fine = self._windows(1)
        self._compared = 0

    def _windows(self, factor: int) -> _Windows:
        query = self._environment.query
        grid = WindowGrid.over(query.region, factor * query.target_width, factor * query.target_height)
        return _Windows(grid, self._mask, self._min_tissue)

    def scores(self, windows: _Windows, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the cosines of windows with the finding: float64, shape (n,)."""
        new = numbers[np.isnan(windows.scores[numbers])]
        vectors = self._environment.survey.embed(windows.grid, new, self._model).astype(np.float64)
        self._compared += new.size
        windows.scores[new] = np.round(vectors @ self._finding, SCORE_DIGITS)
        return windows.scores[numbers]

    def refined(self) -> NDArray[np.int64]:
        """Return the windows that are near the best ones of a coarser look."""
        query = self._environment.query
        room = min(query.region.width / query.target_width, query.region.height / query.target_height)
        return self._inside_best() if room >= LEAST_ROOM else self._beside_best()

    def _inside_best(self) -> NDArray[np.int64]:
        """Return the windows whose centre lies in one of the best coarse windows."""
        coarse = self._windows(COARSE_FACTOR)
        scores = self.scores(coarse, coarse.tissue)
        kept = max(LEAST_KEPT, math.ceil(KEPT_SHARE * scores.size))
        best = coarse.tissue[np.argsort(-scores, kind="stable")[:kept]]
        boxes = self.fine.grid.boxes(self.fine.tissue)
        centres = boxes[:, :2] + boxes[:, 2:] / 2
        is_inside = np.zeros(self.fine.tissue.size, np.bool_)
        for x, y, width, height in coarse.grid.boxes(best).tolist():
            is_inside |= ((centres >= (x, y)) & (centres <= (x + width, y + height))).all(axis=1)
        return self.fine.tissue[is_inside] if is_inside.any() else self.fine.tissue

    def _beside_best(self) -> NDArray[np.int64]:
        """Return the windows of every other row and column, and those that touch or overlap the best of these."""
        place = np.stack(np.divmod(self.fine.tissue, self.fine.grid.lefts.size))
        is_near = (place % 2 == 0).all(axis=0)
        if not is_near.any():
            return self.fine.tissue
        scores = self.scores(self.fine, self.fine.tissue[is_near])
        best = place[:, is_near][:, np.argsort(-scores, kind="stable")[:LEAST_KEPT]]
        for one in best.T:
            is_near = is_near | (np.abs(place - one[:, None]) <= 1).all(axis=0)
        found: NDArray[np.int64] = self.fine.tissue[is_near]
        return found

    def record(self, found: Sequence[Proposal]) -> None:
        """Write down what was compared, with which model, and the best windows."""
        self._environment.recorder.event(
            "retrieval",
            "retrieval",
            model=dict(self._model.identity),
            prompts=VERSION,
            finding_is_cut=self._model.is_cut(self._environment.query.finding),
            windows=self.fine.grid.count,
            with_tissue=self.fine.with_tissue,
            compared=self._compared,
            peaks=[{"box": one.box.as_list(), "score": one.score} for one in found],
        )
