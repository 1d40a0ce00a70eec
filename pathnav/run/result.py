"""The result of an episode, `pathnav-result-1`: all that tables and pictures need, without times."""

import dataclasses
from typing import Any

from pathnav import __version__
from pathnav.localise.environment import Environment
from pathnav.localise.outcome import Outcome, Report, final_box
from pathnav.records import JsonObject
from pathnav.run.case import Case
from pathnav.run.folder import RESULT_FORMAT
from pathnav.run.ledger import cost_fields, ledger
from pathnav.run.plan import Episode
from pathnav.run.run_recorder import RunRecorder
from pathnav.run.scoring import Score, score

PRINTED = (
    *("format", "outcome", "box", "iou", "conclusion", "confidence", "rois_used", "budget", "steps", "tokens"),
    *("cost_usd", "seconds", "agent", "model", "target_cut", "unbudgeted"),
)
"""What `locate --json` prints of a result, beside `out`."""


def query_facts(case: Case) -> JsonObject:
    """Return what an agent is asked, as plain JSON; nothing of the target."""
    query = case.query
    return {
        "handle": query.handle,
        "magnification": query.magnification,
        "finding": query.finding,
        "region": query.region.as_list(),
        "target_size": [query.target_width, query.target_height],
        "budget": query.budget,
        "organ": query.organ,
    }


def result_of(
    episode: Episode,
    environment: Environment | None,
    recorder: RunRecorder,
    outcome: Outcome,
) -> JsonObject:
    """Return the result of an episode that has ended; `reason` and `seconds` are left to the caller.

    Args:
        episode: What was run.
        environment: What the agent was given; None where it never came to that.
        recorder: The episode's record, from which costs are read.
        outcome: How it ended.
    """
    scored = environment.report_made if environment and outcome.is_agents else None
    scores = (
        score(scored, episode.case.query, episode.case.target, episode.case.slide.whole)
        if outcome.is_agents
        else Score()
    )
    return {
        "format": RESULT_FORMAT,
        "key": episode.key,
        "pathnav": __version__,
        **_asked(episode),
        "outcome": str(outcome),
        **_answer(scored, episode.case),
        **dataclasses.asdict(scores),
        **_looks(environment, recorder),
        **_costs(episode, recorder),
        **_embeddings(episode, environment),
    }


def _asked(episode: Episode) -> JsonObject:
    """Return what was planned."""
    case, agent = episode.case, episode.agent
    return {
        "slide": _slide_facts(case),
        "query": {"id": case.query_id, **query_facts(case)},
        "target": case.target.box.as_list() if case.target else None,
        "equivalents": [box.as_list() for box in case.target.equivalents] if case.target else None,
        "scored_target": case.scored_target.as_list() if case.scored_target else None,
        "target_cut": case.target_cut,
        "native_magnification": round(case.slide.native_magnification, 6),
        "upsampled": case.slide.upsampled(case.query.magnification),
        "agent": agent.name,
        "version": agent.version,
        "origin": agent.plugin.origin,
        "configuration": agent.configuration,
        "unbudgeted": agent.unbudgeted,
        "settings": agent.settings,
        "model": agent.model.model if agent.model else None,
        "decoding": agent.decoding,
        "budget": case.query.budget,
        "seed": episode.seed,
        "repeat": episode.repeat,
        "controls": dict(case.controls),
    }


def _slide_facts(case: Case) -> JsonObject:
    """Return which slide it was and how it was read."""
    slide = case.slide
    return {
        "path": case.source.place,
        "fingerprint": slide.fingerprint,
        "whole": slide.whole.as_list(),
        "phantom": slide.phantom,
        "mpp_um": list(slide.mpp_um),
        "objective_power": slide.objective_power,
        "reader": slide.reader,
        "warnings": list(slide.warnings),
    }


def _answer(report: Report | None, case: Case) -> JsonObject:
    """Return what was answered; of declared draws `box` is the first, and the scores are the expectation."""
    return {
        "box": final_box(report.box, case.query, case.slide.whole).as_list() if report else None,
        "reported": report.box.as_list() if report else None,
        "draws": len(report.draws) if report is not None and report.draws is not None else None,
        "conclusion": (report.conclusion or None) if report else None,
        "confidence": report.confidence if report else None,
    }


def _looks(environment: Environment | None, recorder: RunRecorder) -> JsonObject:
    """Return what was looked at, and how much of an image could not be decoded at worst."""
    looks = recorder.events("roi")
    rois = [roi.box.as_list() for roi in environment.rois] if environment else [event["box"] for event in looks]
    shown = [*recorder.events("view"), *looks]
    return {
        "rois": rois,
        "rois_used": len(rois),
        "steps": environment.steps if environment else len(rois),
        "examined_mm2": round(environment.examined_mm2, 6) if environment else None if rois else 0.0,
        "unreadable_share": max((event.get("unreadable_share", 0.0) for event in shown), default=0.0),
    }


def _costs(episode: Episode, recorder: RunRecorder) -> JsonObject:
    """Return what the recorded calls cost, at the prices of now."""
    costs = ledger(*(recorder.events_of_all_takes(kind) for kind in ("reply", "request", "failed_call")))
    model = episode.agent.model.model if episode.agent.model else None
    return {
        "calls": costs.calls,
        "failed_calls": costs.failed,
        "forced_calls": costs.forced,
        "retries": costs.retries,
        "call_seconds": costs.seconds,
        "tokens": costs.tokens,
        "images_sent": costs.images_sent,
        "pixels_sent": costs.pixels_sent,
        "bytes_sent": costs.bytes_sent,
        **cost_fields(model, costs.calls, costs.tokens, episode.prices),
    }


def _embeddings(episode: Episode, environment: Environment | None) -> JsonObject:
    """Return what the embeddings of windows cost, for an agent that asked for any."""
    if environment is None or not episode.agent.unbudgeted or environment.survey.embedding_costs is None:
        return {}
    return {"embeddings": environment.survey.embedding_costs}


def printed(result: JsonObject, out: str | None) -> dict[str, Any]:
    """Return the object that `locate --json` prints.

    Args:
        result: A `pathnav-result-1` object.
        out: The run folder, None where it is not kept.
    """
    return {**{name: result[name] for name in PRINTED}, "out": out}
