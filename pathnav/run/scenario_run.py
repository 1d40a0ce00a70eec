"""A scenario run into a folder, from its validation to its last episode."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pathnav.cohort.scenario import Scenario
from pathnav.model.call_price import TokenPricing
from pathnav.model.gate import Rates
from pathnav.model.prices import load_prices
from pathnav.records import JsonObject, utc_now
from pathnav.run.description import describe_run
from pathnav.run.endpoint import endpoint
from pathnav.run.episode import EpisodeJob
from pathnav.run.exploration import Search
from pathnav.run.explorer import SearchJob
from pathnav.run.folder import RunFolder
from pathnav.run.job import Job
from pathnav.run.open_slides import OpenSlides
from pathnav.run.runner import OnProgress, Progress, RunOptions, run_plan
from pathnav.run.scenario_plan import named_endpoint, needs_model
from pathnav.run.variants import RunPlan, plan_run


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """A scenario and where it is recorded.

    Args:
        scenario: The scenario, its slots filled.
        out: The run folder.
        options: How many at a time, how fast and how far.
    """

    scenario: Scenario
    out: Path
    options: RunOptions = field(default_factory=RunOptions)

    def run(self, on_progress: OnProgress, notify: Callable[[str], None]) -> Progress:
        """Run what is not finished yet; nothing is created before all input has validated.

        Args:
            on_progress: Is told before the first episode and after each.
            notify: Is told, in one line, when something that takes seconds begins.

        Raises:
            PathnavError: If something in the scenario is wrong.
            EndpointUnreachable: If the first question does not reach the endpoint; what this run made is removed.
            KeyboardInterrupt: After Ctrl-C, once what was running has ended or was recorded as interrupted.
        """
        folder = RunFolder(self.out)
        folder.check()
        needed = needs_model(self.scenario)
        with endpoint(named_endpoint(self.scenario), needed=needed) as model, OpenSlides() as slides:
            plan = plan_run(self.scenario, model, slides, notify)
            shard = self.options.shard
            jobs: list[Job] = [
                *map(EpisodeJob, shard.share(plan.episodes)),
                *(SearchJob(search) for group in shard.share(_sharing(plan.searches)) for search in group),
            ]
            options = self._options(jobs)
            return run_plan(jobs, folder, self._description(plan), slides, on_progress, options=options)

    def _options(self, jobs: Sequence[Job]) -> RunOptions:
        """Return the options with what the scenario says of its endpoint, and what that costs.

        Raises:
            ConfigError: If money is limited and a model has no price.
        """
        asked, pricing = self.scenario.model, None
        if self.options.limits.max_usd is not None:
            pricing = TokenPricing(load_prices(self.scenario.prices))
            for name in sorted({job.model.model for job in jobs if job.model is not None}):
                pricing.refuse_unpriced(name)
        rates = Rates(asked.concurrency, asked.requests_per_minute) if asked is not None else None
        return replace(self.options, rates=rates, pricing=pricing)

    def _description(self, plan: RunPlan) -> JsonObject:
        """Return what `run.json` says."""
        return describe_run(
            self.scenario.name,
            self.scenario.resolved(),
            seed=self.scenario.seed,
            episodes=[*(episode.key for episode in plan.episodes), *(key for one in plan.searches for key in one.keys)],
            started=utc_now().isoformat(timespec="seconds"),
            cases=plan.cases,
            sample=plan.sample,
            explorations=[search.as_json() for search in plan.searches],
        )


def _sharing(searches: Sequence[Search]) -> list[list[Search]]:
    """Return searches in groups that share scores: they are one machine's, which holds the file's lock."""
    groups: dict[str, list[Search]] = {}
    for search in searches:
        groups.setdefault(search.scores_name, []).append(search)
    return list(groups.values())
