"""The LangGraph state machine of the VLM agent: brief -> think -> act -> think ... -> close.

`think` asks the model, `act` answers each of its calls, one after the other and in their order. Everything a node
writes goes to the recorder under a name that depends on the turn alone, and everything it counts lives in the state:
a node that was killed and runs again leaves the same record.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pathnav.cohort.protocol import FORCED_TRIES, max_steps
from pathnav.errors import ContextOverflow
from pathnav.localise import prompts
from pathnav.localise.conversation import Conversation
from pathnav.localise.environment import Environment
from pathnav.localise.history import Message
from pathnav.localise.outcome import Outcome
from pathnav.localise.state import EpisodeState, reason_to_force, report_as_dict, restore, steps_left
from pathnav.localise.tool import REPORT_TOOL, Tool, ToolReply, call_tool, function_schema
from pathnav.model import Reply
from pathnav.model.reply import parse_arguments

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

Update = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of the graph over one environment, one conversation and the tools on offer."""

    environment: Environment
    conversation: Conversation
    tools: Mapping[str, Tool]

    def brief(self, state: EpisodeState) -> Update:
        """Open the conversation with the task and the free overview."""
        environment = self.environment
        overview = environment.overview()
        parts = [
            {"text": prompts.task(environment.query, environment.budget)},
            {"text": overview.caption("Overview of the search region")},
            {"image": overview.sha256},
        ]
        return {"messages": [{"role": "system", "text": prompts.text("system")}, {"role": "user", "parts": parts}]}

    def think(self, state: EpisodeState) -> Update:
        """Ask the model for its next calls, or, when it is time, for its report alone."""
        restore(self.environment, state)
        why = reason_to_force(self.environment, state)
        messages = list(state["messages"])
        if why:
            messages.append(self._demand(why, again=state["forced"] > 0))
        offered = {REPORT_TOOL: self.tools[REPORT_TOOL]} if why else self.tools
        schemas = [function_schema(tool) for tool in offered.values()]
        try:
            reply = self.conversation.ask(state["turn"], messages, schemas, REPORT_TOOL if why else None)
        except ContextOverflow:
            return {"ending": str(Outcome.CONTEXT_OVERFLOW)}
        update: Update = {
            "messages": [*messages, _assistant_message(reply)],
            # The raw text alone: parsed numbers of any size and nesting of any depth break a checkpoint.
            "pending": [{"id": call.id, "name": call.name, "raw": call.raw} for call in reply.calls],
            "turn": state["turn"] + 1,
            "forced": state["forced"] + (1 if why else 0),
        }
        if reply.refused and not reply.calls:
            update["ending"] = str(Outcome.REFUSED)
            update["steps"] = state["steps"] + 1
        return update

    def act(self, state: EpisodeState) -> Update:
        """Answer every call of the last turn in order, or remind a model that made none."""
        restore(self.environment, state)
        steps, replies, parsed = state["steps"], [], False
        for index, call in enumerate(state["pending"]):
            reply, counted = self._answer(state, call, index, steps)
            steps += counted
            parsed = parsed or reply.parsed
            replies.append(self._tool_message(call, reply, f"tool:{state['turn'] - 1}:{index}", steps))
        silent = 0 if state["pending"] else state["silent"] + 1
        if not state["pending"]:
            steps = min(steps + 1, max_steps(self.environment.budget))
            if reason_to_force(self.environment, {**state, "steps": steps, "silent": silent}) is None:
                replies.append(self._reminder(steps))
        return {
            "messages": [*state["messages"], *replies],
            "pending": [],
            "steps": steps,
            "silent": silent,
            "unparsed": 0 if parsed else state["unparsed"] + 1,
            "rois": [roi.as_dict() for roi in self.environment.rois],
            "report": report_as_dict(self.environment.report_made),
        }

    def close(self, state: EpisodeState) -> Update:
        """Leave the environment's counters as the state has them."""
        restore(self.environment, state)
        return {}

    def _answer(self, state: EpisodeState, call: Mapping[str, Any], index: int, steps: int) -> tuple[ToolReply, int]:
        """Return the reply to one call and the steps it took."""
        name, forced, limit = call["name"], state["forced"] > 0, max_steps(self.environment.budget)
        if self.environment.finished:
            return ToolReply({"error": "the report was accepted before: the episode has ended"}), 0
        if forced and index > 0:
            return ToolReply({"error": "only the first call of this turn counts"}), 0
        if not forced and steps >= (limit if name == REPORT_TOOL else limit - 1):
            return ToolReply({"error": f"no step is left for {name}: report with {REPORT_TOOL}"}), 0
        offered = {REPORT_TOOL: self.tools[REPORT_TOOL]} if forced else self.tools
        # The second try of a forced turn belongs to the step of the first.
        return call_tool(offered, self.environment, name, parse_arguments(call["raw"])), min(1, limit - steps)

    def _tool_message(self, call: Mapping[str, Any], reply: ToolReply, event_id: str, steps: int) -> Message:
        environment = self.environment
        content = {
            **reply.content,
            "rois_left": environment.rois_left,
            "steps_left": steps_left(environment, steps),
        }
        image = None
        if reply.view is not None:
            image = {
                "caption": reply.view.caption(f"Image of {call['name']} {call['id']}"),
                "sha256": reply.view.sha256,
            }
        text = json.dumps(content)
        environment.recorder.event(
            event_id,
            "tool",
            step=steps,
            call_id=call["id"],
            name=call["name"],
            arguments=call["raw"],
            reply=text,
            image=image,
        )
        return {"role": "tool", "call_id": call["id"], "name": call["name"], "text": text, "image": image}

    def _reminder(self, steps: int) -> Message:
        left = steps_left(self.environment, steps)
        text = prompts.text("reminder").format(rois_left=self.environment.rois_left, steps_left=left)
        return {"role": "user", "parts": [{"text": text}]}

    def _demand(self, why: str, again: bool) -> Message:
        text = prompts.text("again" if again else "forced")
        filled = text.format(why=why, region=self.environment.query.region.as_list())
        return {"role": "user", "parts": [{"text": filled}]}


def _assistant_message(reply: Reply) -> Message:
    """Return the turn as it is sent again: calls in their order, arguments always the text of a JSON object."""
    calls = [{"id": call.id, "name": call.name, "arguments": call.resent} for call in reply.calls]
    return {"role": "assistant", "text": reply.text, "calls": calls}


def _after_think(state: EpisodeState) -> str:
    return "close" if state["ending"] else "act"


def _after_act(state: EpisodeState) -> str:
    return "close" if state["report"] or state["forced"] >= FORCED_TRIES else "think"


def build_graph(nodes: Nodes, checkpointer: Any = None) -> "CompiledStateGraph[EpisodeState, None, Any, Any]":
    """Return the compiled state machine."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(EpisodeState)
    graph.add_node("brief", nodes.brief)
    graph.add_node("think", nodes.think)
    graph.add_node("act", nodes.act)
    graph.add_node("close", nodes.close)
    graph.add_edge(START, "brief")
    graph.add_edge("brief", "think")
    graph.add_conditional_edges("think", _after_think, ["act", "close"])
    graph.add_conditional_edges("act", _after_act, ["think", "close"])
    graph.add_edge("close", END)
    return graph.compile(checkpointer=checkpointer)
