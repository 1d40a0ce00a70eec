"""What a run came to: scores with their intervals, tables beside the paper's, and pictures.

scores = make_report("runs/quickstart").as_json()
draw_episode("runs/quickstart", "3b5c0fc661cbc3ef0c88").save("trajectory.png")
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathnav.report.exploration_record import ExplorationResult
    from pathnav.report.load import EpisodeResult, RunRecord, load_run
    from pathnav.report.picture import draw_episode, draw_result, draw_trajectory
    from pathnav.report.summary import Report, make_report

__all__ = [
    "EpisodeResult",
    "ExplorationResult",
    "Report",
    "RunRecord",
    "draw_episode",
    "draw_result",
    "draw_trajectory",
    "load_run",
    "make_report",
]

_HOMES = {
    "EpisodeResult": "load",
    "ExplorationResult": "exploration_record",
    "Report": "summary",
    "RunRecord": "load",
    "draw_episode": "picture",
    "draw_result": "picture",
    "draw_trajectory": "picture",
    "load_run": "load",
    "make_report": "summary",
}


def __getattr__(name: str) -> Any:
    """Import an exported name when it is first used: a table needs no picture library."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
