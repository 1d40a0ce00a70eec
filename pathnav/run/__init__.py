"""Many episodes or one: planned, run, recorded, and continued from wherever they stopped.

from pathnav.run import locate

result = locate("slide.svs", "dense infiltrate", magnification=10, agent="my_agent.py:MyAgent")
print(result["outcome"], result["box"])
"""

import importlib
from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "ExploreRequest": "explore_request",
    "Question": "question",
    "Request": "request",
    "RunFolder": "folder",
    "ScenarioRun": "scenario_run",
    "SlideSource": "case",
    "explore_slide": "explore_request",
    "locate": "request",
    "run_plan": "runner",
}


def __getattr__(name: str) -> Any:
    """Import an exported name when it is first used: the agents behind it take 1 s to import."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
