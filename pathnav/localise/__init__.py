"""Mode A: the environment that holds the budget, the state machine, and the views a model is shown."""

from pathnav.localise.agent import Agent
from pathnav.localise.environment import Environment
from pathnav.localise.final_box import final_box, final_boxes
from pathnav.localise.outcome import Outcome
from pathnav.localise.recorder import MemoryRecorder, Recorder
from pathnav.localise.report_made import Report
from pathnav.localise.roi import Roi
from pathnav.localise.tool import Tool, ToolReply
from pathnav.localise.views import View, ViewSettings

__all__ = [
    "Agent",
    "Environment",
    "MemoryRecorder",
    "Outcome",
    "Recorder",
    "Report",
    "Roi",
    "Tool",
    "ToolReply",
    "View",
    "ViewSettings",
    "final_box",
    "final_boxes",
]
