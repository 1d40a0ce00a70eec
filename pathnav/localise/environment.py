"""The one place that reads pixels for an agent, counts its looks and takes its report."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pathnav.cohort.protocol import check_budget, max_steps
from pathnav.cohort.query import Query
from pathnav.errors import BudgetExhausted, RoiError
from pathnav.geometry import Box, Floats, union_area
from pathnav.localise.conversation import MemoryRecorder, RecordedChat, Recorder
from pathnav.localise.outcome import Report, Roi, checked_confidence, checked_draws, draws_fields
from pathnav.localise.survey import Survey
from pathnav.localise.views import View, ViewSettings, view_of
from pathnav.model import ChatClient
from pathnav.model.profile import Frame
from pathnav.retrieval.embeddings import EmbeddingStore
from pathnav.slide import Slide


class Environment:
    """A slide, a query and a budget of ROIs; the target is not in here.

    Args:
        slide: An open slide with a physical scale; the environment does not close it.
        query: What is asked.
        budget: ROIs; default: the query's.
        seed: Seeds `rng` together with the query.
        unbudgeted: Whether `survey` is granted.
        views: How images are shown; ticks count what the endpoint's profile says.
        recorder: Where events and images go; default: memory.
        chat: The chat endpoint for agents that use one.
        embeddings: Where a survey keeps embeddings of windows; default: they go with the environment.

    Raises:
        ConfigError: If the budget is below 1 or beyond all sense.
        SlideError: If the slide has no physical scale.
    """

    def __init__(
        self,
        slide: Slide,
        query: Query,
        budget: int | None = None,
        *,
        seed: int = 0,
        unbudgeted: bool = False,
        views: ViewSettings | None = None,
        recorder: Recorder | None = None,
        chat: ChatClient | None = None,
        embeddings: EmbeddingStore | None = None,
    ) -> None:
        self._query = query
        self._budget = query.budget if budget is None else budget
        check_budget(self._budget)
        frame = chat.settings.profile.frame if chat is not None else Frame.LEVEL0
        self.views = replace(views or ViewSettings(), frame=frame)
        self.recorder: Recorder = recorder or MemoryRecorder()
        self.chat = None if chat is None else RecordedChat(chat, self.recorder)
        self.rng = np.random.default_rng(query_seed(query, seed))
        self._steps = 0
        self._report: Report | None = None
        self._slide = slide
        self._mpp_um = slide.mpp_um
        self._rois: list[Roi] = []
        self._survey = Survey(slide, query.region, self.views.blank_images, embeddings) if unbudgeted else None
        self._overview: View | None = None

    @property
    def query(self) -> Query:
        """What is asked."""
        return self._query

    @property
    def budget(self) -> int:
        """The ROIs that were granted."""
        return self._budget

    @property
    def steps(self) -> int:
        """Calls so far, refused ones included; of the vlm agent also its answers without a call."""
        return self._steps

    @property
    def report_made(self) -> Report | None:
        """The accepted report."""
        return self._report

    @property
    def rois(self) -> tuple[Roi, ...]:
        """The looks so far, in order."""
        return tuple(self._rois)

    @property
    def rois_used(self) -> int:
        """How many ROIs were paid for."""
        return len(self._rois)

    @property
    def rois_left(self) -> int:
        """How many ROIs are left."""
        return self.budget - len(self._rois)

    @property
    def finished(self) -> bool:
        """Whether a report was accepted."""
        return self._report is not None

    @property
    def survey(self) -> Survey:
        """Looking without a budget.

        Raises:
            BudgetExhausted: If the agent did not declare `unbudgeted = True`.
        """
        if self._survey is None:
            raise BudgetExhausted("survey is only granted to agents that declare `unbudgeted = True`")
        return self._survey

    @property
    def examined_mm2(self) -> float:
        """The area in mm2 of the union of all ROIs and of all that a survey read."""
        surveyed = self._survey.boxes if self._survey else []
        return self._slide.area_mm2(union_area([*(roi.box for roi in self._rois), *surveyed]))

    @property
    def legal_range(self) -> str:
        """The sentence that tells which boxes may be asked for."""
        region = self.query.region
        return (
            f"a box must have at least 1 px of width and height inside the search region: x from {region.x:g} to "
            f"{region.right:g}, y from {region.y:g} to {region.bottom:g} (level-0 px)"
        )

    def overview(self) -> View:
        """Return the free image of the whole search region."""
        if self._overview is None:
            self._overview = self._show(self.query.region.rounded_out())
            self.recorder.event("view:overview", "view", sha256=self._overview.sha256, **self._overview.facts())
        return self._overview

    def slide_facts(self) -> dict[str, Any]:
        """Return what `get_image_info` tells, as plain JSON; free."""
        self._count_step()
        slide, query = self._slide, self.query
        return {
            "slide": query.handle,
            "slide_size_px": [slide.width, slide.height],
            "scanned_area": slide.bounds.as_list(),
            "mpp_um": list(self._mpp_um),
            "objective_power": slide.objective_power,
            "levels": [
                {"size_px": list(size_px), "downsample": [round(d, 4) for d in downsample]}
                for size_px, downsample in zip(slide.level_dimensions, slide.level_downsamples, strict=True)
            ],
            "magnification": query.magnification,
            "search_region": query.region.as_list(),
            "target_size_px": [query.target_width, query.target_height],
            "rois_left": self.rois_left,
        }

    def box(self, numbers: Sequence[float]) -> Box:
        """Return the box of `[x, y, w, h]`.

        Raises:
            RoiError: If it is not four finite numbers with positive extents; tells the legal range.
        """
        if len(numbers) != 4 or not all(math.isfinite(n) for n in numbers) or min(numbers[2:]) <= 0:
            raise RoiError(f"expected four finite numbers [x, y, w, h] with w > 0 and h > 0; {self.legal_range}")
        return Box.from_list(numbers)

    def extract_roi(self, box: Box, reason: str = "") -> View:
        """Return the image of a box, cut to the search region; costs one ROI.

        Args:
            box: Level-0 pixels.
            reason: Why the agent looks there.

        Raises:
            RoiError: If under 1 px of the box lies in the search region, or a report was accepted; costs nothing.
            BudgetExhausted: If no ROI or no step is left.
        """
        self._count_step()
        if self.finished:
            raise RoiError("the report was accepted and the episode has ended: no further ROI is given")
        if self.rois_left <= 0:
            raise BudgetExhausted(f"all {self.budget} ROIs are used: report with finish_and_report")
        inside = box.intersection(self.query.region)
        if min(box.width, box.height, inside.width, inside.height) < 1:
            raise RoiError(f"the ROI {box.as_list()} is refused: {self.legal_range}")
        view = self._show(inside.rounded_out())
        roi = Roi(view.box, reason, view.magnification, view.sha256, cut=not self.query.region.holds(box))
        self._rois.append(roi)
        facts = {"requested": box.as_list(), "unreadable_share": round(view.failed_share, 4), **roi.as_dict()}
        self.recorder.event(f"roi:{len(self._rois)}", "roi", **facts)
        return view

    def report(self, box: Box, conclusion: str = "", confidence: float | None = None) -> None:
        """Hand in the one answer; ends the episode.

        Args:
            box: Level-0 pixels; must meet the search region. It is scored as a box of the target's size around the
                same centre.
            conclusion: Free text.
            confidence: 0 to 1; anything else is recorded as None.

        Raises:
            RoiError: If the box has no area or misses the search region, or a report was accepted before.
        """
        self._check_open()
        if box.is_empty or not box.meets(self.query.region):
            raise RoiError(f"the reported box {box.as_list()} is not valid: {self.legal_range}")
        self._accept(Report(box, conclusion, checked_confidence(confidence)), {"draws": None})

    def report_draws(self, draws: Floats, weights: Floats | None = None, conclusion: str = "") -> None:
        """Hand in a distribution over boxes; the score is the expectation over it.

        Args:
            draws: float64, shape (n, 4), rows [x, y, w, h] in level-0 pixels.
            weights: float64, shape (n,), non-negative; default: all alike.
            conclusion: Free text.

        Raises:
            RoiError: If a draw is not a valid box, or a report was accepted before.
        """
        self._check_open()
        boxes, shares = checked_draws(draws, weights, self.query.region)
        first = Box.from_list(boxes[int(np.argmax(shares > 0))].tolist())
        self._accept(Report(first, conclusion, None, boxes, shares), draws_fields(boxes, shares))

    def _set_steps(self, steps: int) -> None:
        """Set the calls so far; for the state machine alone, which counts answers without a call too."""
        self._steps = steps

    def _count_step(self) -> None:
        """Count a look or a question; only a report is taken when the steps are used up."""
        if self._steps >= max_steps(self._budget):
            raise BudgetExhausted(f"all {max_steps(self._budget)} steps are used: report")
        self._steps += 1

    def _check_open(self) -> None:
        self._steps += 1
        if self.finished:
            raise RoiError("a report was accepted before: an episode takes one report")

    def _accept(self, report: Report, draws: dict[str, Any]) -> None:
        self._report = report
        self.recorder.event(
            "report",
            "report",
            box=report.box.as_list(),
            conclusion=report.conclusion,
            confidence=report.confidence,
            **draws,
        )

    def _show(self, box: Box) -> View:
        return view_of(self._slide.reading(box, max_side_px=self.views.view_px), self.views, self.recorder.image)


def query_seed(query: Query, seed: int) -> list[int]:
    """Return the entropy of an episode's generator: the seed, and a hash of the query without its budget."""
    numbers = (query.magnification, *query.region.as_list(), query.target_width, query.target_height)
    asked = [query.handle, query.finding, query.organ, *map(float, numbers)]
    return [seed, int.from_bytes(hashlib.sha256(json.dumps(asked).encode()).digest()[:8], "big")]
