"""A scenario run into a folder, from its validation to its last episode."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pathnav.cohort.scenario import Scenario
from pathnav.run.description import describe_run
from pathnav.run.endpoint import endpoint
from pathnav.run.exploration import Search
from pathnav.run.folder import RunFolder
from pathnav.run.open_slides import OpenSlides
from pathnav.run.record import JsonObject, utc_now
from pathnav.run.runner import OnProgress, Progress, Unit, run_plan
from pathnav.run.scenario_plan import ScenarioPlan, named_endpoint, needs_model, plan_scenario, scenario_agents
from pathnav.run.scenario_searches import plan_searches, scenario_scorers


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """A scenario and where it is recorded.

    Args:
        scenario: The scenario, its slots filled.
        out: The run folder.
    """

    scenario: Scenario
    out: Path

    def run(self, on_progress: OnProgress, notify: Callable[[str], None]) -> Progress:
        """Run what is not finished yet; nothing is created before all input has validated.

        Args:
            on_progress: Is told before the first episode and after each.
            notify: Is told, in one line, when something that takes seconds begins.

        Raises:
            PathnavError: If something in the scenario is wrong.
            EndpointUnreachable: If the first question does not reach the endpoint; what this run made is removed.
            KeyboardInterrupt: After the episode that was running was recorded as interrupted.
        """
        folder = RunFolder(self.out)
        folder.check()
        needed = needs_model(self.scenario)
        with endpoint(named_endpoint(self.scenario), needed=needed) as model, OpenSlides() as slides:
            agents = scenario_agents(self.scenario, model)
            scorers = scenario_scorers(self.scenario, model)
            plan = plan_scenario(self.scenario, agents, slides, notify)
            searches = plan_searches(self.scenario, scorers, slides, notify)
            units: list[Unit] = [*plan.episodes, *searches]
            return run_plan(units, folder, self._description(plan, searches), slides, on_progress)

    def _description(self, plan: ScenarioPlan, searches: "list[Search]") -> JsonObject:
        """Return what `run.json` says."""
        return describe_run(
            self.scenario.name,
            self.scenario.resolved(),
            seed=self.scenario.seed,
            episodes=[*(episode.key for episode in plan.episodes), *(key for one in searches for key in one.keys)],
            started=utc_now().isoformat(timespec="seconds"),
            cases=plan.cases,
            sample=plan.sample,
            explorations=[search.as_json() for search in searches],
        )
