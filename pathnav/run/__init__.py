"""Many episodes or one: planned, run, recorded, and continued from wherever they stopped.

from pathnav.run import locate

result = locate("slide.svs", "dense infiltrate", magnification=10, agent="my_agent.py:MyAgent")
print(result["outcome"], result["box"])
"""

from typing import TYPE_CHECKING

from pathnav._lazy import on_first_use

if TYPE_CHECKING:
    from pathnav.run.case import SlideSource
    from pathnav.run.explore_request import ExploreRequest, explore_slide
    from pathnav.run.folder import RunFolder
    from pathnav.run.question import Question
    from pathnav.run.request import Request, locate
    from pathnav.run.runner import run_plan
    from pathnav.run.scenario_run import ScenarioRun

__all__ = [
    "ExploreRequest",
    "Question",
    "Request",
    "RunFolder",
    "ScenarioRun",
    "SlideSource",
    "explore_slide",
    "locate",
    "run_plan",
]

__getattr__ = on_first_use(  # the agents behind it take 1 s to import
    __name__,
    case="SlideSource",
    explore_request="ExploreRequest explore_slide",
    folder="RunFolder",
    question="Question",
    request="Request locate",
    runner="run_plan",
    scenario_run="ScenarioRun",
)
