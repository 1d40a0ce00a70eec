"""Agents that each break one rule of the contract, and one that keeps them all."""

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pathnav.errors import BudgetExhausted, RoiError
from pathnav.geometry import Box
from pathnav.localise import Environment
from pathnav.testing import Rule


def middle(environment: Environment) -> Box:
    """Return the target's size around the middle of the search region."""
    query = environment.query
    return Box.centred(query.region.centre, query.target_width, query.target_height)


class Sound:
    """Look around as long as the budget lasts, then report where it looked last."""

    def run(self, environment: Environment) -> None:
        box = middle(environment)
        while environment.rois_left:
            x, y = environment.rng.uniform(0, 1, 2) * (environment.query.region.width, environment.query.region.height)
            box = Box.centred((environment.query.region.x + x, environment.query.region.y + y), 64, 64)
            environment.extract_roi(box, "chance")
        environment.report(box)


class Overspends:
    broken = Rule.BUDGET

    def run(self, environment: Environment) -> None:
        while True:
            environment.extract_roi(middle(environment))


class OverspendsAndHidesIt:
    broken = Rule.BUDGET

    def run(self, environment: Environment) -> None:
        try:
            while True:
                environment.extract_roi(middle(environment))
        except BudgetExhausted:
            environment.report(middle(environment))


class RaisesItsBudget:
    broken = Rule.BUDGET

    def run(self, environment: Environment) -> None:
        environment._budget += 2
        while environment.rois_left:
            environment.extract_roi(middle(environment))
        environment.report(middle(environment))


class SurveysUndeclared:
    broken = Rule.BUDGET

    def run(self, environment: Environment) -> None:
        environment.survey.tissue_mask()


class LooksOutside:
    broken = Rule.BOUNDS

    def run(self, environment: Environment) -> None:
        try:
            environment.extract_roi(Box(environment.query.region.right + 10, 0, 100, 100))
        except RoiError:
            environment.report(middle(environment))


class ReportsOutside:
    broken = Rule.BOUNDS

    def run(self, environment: Environment) -> None:
        environment.report(Box(environment.query.region.right + 10, 0, 100, 100))


class NeverReports:
    broken = Rule.REPORT

    def run(self, environment: Environment) -> None:
        environment.overview()


class ReportsTwice:
    broken = Rule.REPORT

    def run(self, environment: Environment) -> None:
        for _ in range(2):
            environment.report(middle(environment))


class LooksAfterTheReport:
    broken = Rule.REPORT

    def run(self, environment: Environment) -> None:
        environment.report(middle(environment))
        environment.extract_roi(middle(environment))


class DrawsItsOwnNumbers:
    broken = Rule.SEED

    def run(self, environment: Environment) -> None:
        box = middle(environment)
        shift = np.random.default_rng().uniform(0, box.width / 4)
        environment.report(Box(box.x + shift, box.y, box.width, box.height))


class RemembersTheLastEpisode:
    broken = Rule.SEED
    episodes: ClassVar[list[int]] = []

    def run(self, environment: Environment) -> None:
        self.episodes.append(1)
        environment.report(middle(environment), f"episode {len(self.episodes)}")


class ReadsTheTree:
    broken = Rule.TARGET

    def run(self, environment: Environment) -> None:
        environment.report(middle(environment), str(truth_beside(environment)))


class ReadsTheTreeIfItIsThere:
    broken = Rule.TARGET

    def run(self, environment: Environment) -> None:
        try:
            environment.report(middle(environment), str(truth_beside(environment)))
        except FileNotFoundError:
            environment.report(middle(environment), "no idea")


def truth_beside(environment: Environment) -> Any:
    """Return what lies beside the slide, reached through a private name."""
    slide: Any = environment._slide
    return json.loads(Path(slide.path).with_suffix(".tree.json").read_text())["slides"][0]["nodes"][0]


class ChangesTheQuery:
    broken = Rule.QUERY

    def run(self, environment: Environment) -> None:
        object.__setattr__(environment.query, "finding", "something easier")
        environment.report(middle(environment))


class SwapsTheQuery:
    broken = Rule.QUERY

    def run(self, environment: Environment) -> None:
        from dataclasses import replace

        environment._query = replace(environment.query, target_width=1.0)
        environment.report(middle(environment))


class ClosesTheSlide:
    broken = Rule.OPEN

    def run(self, environment: Environment) -> None:
        environment.report(middle(environment))
        slide: Any = environment._slide
        slide.close()


BAD_AGENTS = (
    Overspends,
    OverspendsAndHidesIt,
    RaisesItsBudget,
    SurveysUndeclared,
    LooksOutside,
    ReportsOutside,
    NeverReports,
    ReportsTwice,
    LooksAfterTheReport,
    DrawsItsOwnNumbers,
    RemembersTheLastEpisode,
    ReadsTheTree,
    ReadsTheTreeIfItIsThere,
    ChangesTheQuery,
    SwapsTheQuery,
    ClosesTheSlide,
)
