"""Mode A: the environment that holds the budget, the state machine, and the views a model is shown."""

from pathnav.localise.agent import Agent, Proposal, Proposer
from pathnav.localise.conversation import MemoryRecorder, Recorder
from pathnav.localise.environment import Environment
from pathnav.localise.outcome import Outcome, Report, Roi, final_box, final_boxes
from pathnav.localise.tool import Tool, ToolReply
from pathnav.localise.views import View, ViewSettings

__all__ = [
    "Agent",
    "Environment",
    "MemoryRecorder",
    "Outcome",
    "Proposal",
    "Proposer",
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
