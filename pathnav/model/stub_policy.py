"""How the stub navigates: from the overview to promising places, closer, and on where a look disappoints.

Every place is a window of the target's size; its worth is read from the image that shows it.
"""

import math
from dataclasses import dataclass

from pathnav.geometry import Box
from pathnav.model.stub_appetite import Appetite, appetite
from pathnav.model.stub_conversation import Look, Task
from pathnav.model.stub_windows import OVERVIEW_STEPS, Extent, Place, blind_windows, windows_in

WIDE = 3.0  # a first look shows so many target sides, so that the target is a third of the view
CLOSE = 1.15  # a second look shows the target with a rim
SPENT = 0.6  # share of the budget that is used; the rest stays, so that the report is made in time
PLEASED = 0.85  # a wide look earns a close one if it holds at least this share of the best worth so far
COVERS = 0.5  # a wide look at so much of the region would only repeat the overview
CANDIDATES = 64  # a wide look rules out up to 25 of them
BLIND = 0.05  # confidence of a report without any evidence


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next.

    Args:
        box: The box to look at or to report.
        report: Which of the two.
        remark: Why.
        best: The best place seen in a look so far.
        confidence: For the report.
    """

    box: Box
    report: bool
    remark: str
    best: Place | None
    confidence: float = BLIND


@dataclass(frozen=True, slots=True)
class _Search:
    """A task with what follows from it."""

    task: Task
    region: Box
    extent: Extent
    taste: Appetite

    def best_in(self, look: Look) -> Place | None:
        found = windows_in(look, self.region, self.extent, self.taste)
        return found.best() if found else None

    def candidates(self) -> list[Place]:
        """Return places of the overview, best first; without one, places from the region's centre outwards."""
        overview = self.task.overview
        found = windows_in(overview, self.region, self.extent, self.taste, OVERVIEW_STEPS) if overview else None
        return list((found or blind_windows(self.region, self.extent)).distinct(CANDIDATES))


def decide(task: Task, region: Box, may_look: bool = True) -> Step:
    """Return the next step of an episode; the same conversation always gives the same step.

    Args:
        task: What the conversation says.
        region: The search region.
        may_look: Whether looking is on offer; without it the step is a report.
    """
    width, height = task.target or (region.width / 4, region.height / 4)
    extent = (min(width, region.width), min(height, region.height))
    search = _Search(task, region, extent, appetite(task.finding))
    found = [search.best_in(look) for look in task.looks]
    best = _best([*found, Place(*task.noted) if task.noted else None])
    goal = min(math.ceil(SPENT * task.budget), max(1, task.budget - 1))
    following = None
    if may_look and max(len(task.looks), len(task.asked)) < goal and task.rois_left > 0:
        following = _next_look(search, found)
    if following is None:
        return _report(search, best)
    return Step(following, False, f"looking for {search.taste.value} tissue", best)


def _best(places: list[Place | None]) -> Place | None:
    return max((place for place in places if place), key=lambda place: place.worth, default=None)


def _report(search: _Search, best: Place | None) -> Step:
    """Return the report of the best place; of the region's centre where an earlier report was refused."""
    ranked = search.candidates()
    chosen = best or ranked[0]
    if search.task.reports:
        chosen = Place(Box.centred(search.region.centre, *search.extent), 0.0)
    typical = sorted(place.worth for place in ranked)[len(ranked) // 2]
    lead = (chosen.worth - typical) / chosen.worth if chosen.worth > 0 else BLIND
    confidence = round(min(0.95, max(BLIND, lead)), 2)
    return Step(chosen.box, True, f"the most {search.taste.value} window of the target's size", best, confidence)


def _next_look(search: _Search, found: list[Place | None]) -> Box | None:
    """Return the box to look at, None where every promising place has been seen."""
    task, region = search.task, search.region
    here = found[-1] if found else None
    if here and _is_wide(task.looks[-1].box, search.extent):
        earlier = _best(found[:-1])
        close = _grown(here.box, CLOSE, region)
        if here.worth >= PLEASED * (earlier.worth if earlier else 0.0) and close not in task.asked:
            return close
    seen = [*task.asked, *(look.box for look in task.looks)]
    for place in search.candidates():
        if not any(box.holds_point(place.box.centre) for box in seen):
            wide = _grown(place.box, WIDE, region)
            return wide if wide.area <= COVERS * region.area else _grown(place.box, CLOSE, region)
    return None


def _is_wide(box: Box, extent: Extent) -> bool:
    return box.width > 1.5 * CLOSE * extent[0] or box.height > 1.5 * CLOSE * extent[1]


def _grown(place: Box, factor: float, region: Box) -> Box:
    """Return a place with its surroundings in whole pixels, moved and cut into the region."""
    grown = Box.centred(place.centre, factor * place.width, factor * place.height).shifted_into(region)
    return grown.rounded_out().intersection(region)
