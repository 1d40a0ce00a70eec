"""The state of an episode of the VLM agent: plain JSON, images by name, so that a checkpoint is small and readable."""

from typing import Any, TypedDict

from pathnav.cohort.protocol import MAX_SILENT_ANSWERS, max_steps
from pathnav.geometry import Box
from pathnav.localise.environment import Environment
from pathnav.localise.history import Message
from pathnav.localise.outcome import Outcome
from pathnav.localise.report_made import Report
from pathnav.localise.roi import Roi

UNPARSED_TURNS = 3
"""So many turns in a row that could not be parsed, and no valid box, make the outcome `format_errors`."""


class EpisodeState(TypedDict):
    """What the graph carries from node to node.

    `messages` is the conversation (see `pathnav.localise.history`), `pending` the calls that wait for a reply, `turn`
    the number of requests made, `steps` the tool calls and silent answers so far, `silent` and `unparsed` count turns
    in a row, `forced` counts forced turns, `shown` are the images so far, `ending` is an outcome decided before the
    close.
    """

    messages: list[Message]
    pending: list[dict[str, Any]]
    turn: int
    steps: int
    silent: int
    unparsed: int
    forced: int
    shown: list[dict[str, Any]]
    rois: list[dict[str, Any]]
    report: dict[str, Any] | None
    ending: str | None


def first_state() -> EpisodeState:
    """Return the state before anything happened."""
    return EpisodeState(
        messages=[],
        pending=[],
        turn=0,
        steps=0,
        silent=0,
        unparsed=0,
        forced=0,
        shown=[],
        rois=[],
        report=None,
        ending=None,
    )


def restore(environment: Environment, state: EpisodeState) -> None:
    """Set the environment's counters to the state's, so that a node that runs again counts nothing twice."""
    report = state["report"]
    made = Report(Box.from_list(report["box"]), report["conclusion"], report["confidence"]) if report else None
    environment._restore((Roi.from_dict(roi) for roi in state["rois"]), made, state["steps"])


def report_as_dict(report: Report | None) -> dict[str, Any] | None:
    """Return a report as plain JSON."""
    if report is None:
        return None
    return {"box": report.box.as_list(), "conclusion": report.conclusion, "confidence": report.confidence}


def steps_left(environment: Environment, steps: int) -> int:
    """Return the steps that are left of 3 x budget + 6."""
    return max(0, max_steps(environment.budget) - steps)


def reason_to_force(environment: Environment, state: EpisodeState) -> str | None:
    """Return why the next turn must be the forced one, or None."""
    if environment.rois_left <= 0:
        return "The ROI budget is spent."
    if steps_left(environment, state["steps"]) <= 1:
        return "One step is left."
    if state["silent"] >= MAX_SILENT_ANSWERS:
        return f"{MAX_SILENT_ANSWERS} answers in a row had no tool call."
    return "No valid report was received." if state["forced"] else None


def outcome_of(state: EpisodeState) -> Outcome:
    """Return how the episode ended."""
    if state["report"]:
        return Outcome.FORCED if state["forced"] else Outcome.FINISHED
    if state["ending"]:
        return Outcome(state["ending"])
    return Outcome.FORMAT_ERRORS if state["unparsed"] >= UNPARSED_TURNS else Outcome.NO_REPORT
