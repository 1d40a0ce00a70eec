"""What a run came to: scores with their intervals, tables beside the paper's, and pictures.

scores = make_report("runs/quickstart").as_json()
draw_episode("runs/quickstart", "3b5c0fc661cbc3ef0c88").save("trajectory.png")
"""

from typing import TYPE_CHECKING

from pathnav._lazy import on_first_use

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

__getattr__ = on_first_use(  # a table needs no picture library
    __name__,
    exploration_record="ExplorationResult",
    load="EpisodeResult RunRecord load_run",
    picture="draw_episode draw_result draw_trajectory",
    summary="Report make_report",
)
