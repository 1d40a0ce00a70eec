"""The LangGraph state machine of the VLM agent: brief -> think -> act -> think ... -> close.

`think` asks the model, `act` answers each of its calls, one after the other and in their order. Everything a node
writes goes to the recorder under a name that depends on the turn alone, and everything it counts lives in the state:
a node that was killed and runs again leaves the same record.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pathnav.cohort.protocol import FORCED_TRIES, max_steps
from pathnav.errors import ContextOverflow
from pathnav.geometry import Box
from pathnav.localise import prompts
from pathnav.localise.conversation import Conversation
from pathnav.localise.coordinates import Shown
from pathnav.localise.environment import Environment
from pathnav.localise.faces import Faces
from pathnav.localise.history import Message
from pathnav.localise.outcome import Outcome
from pathnav.localise.state import EpisodeState, reason_to_force, report_as_dict, restore, steps_left
from pathnav.localise.tool import REPORT_TOOL, ToolReply
from pathnav.model import Reply
from pathnav.model.reply import parse_arguments

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

Update = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of the graph over one environment, one conversation, the tools on offer and windows as hints."""

    environment: Environment
    conversation: Conversation
    faces: Faces
    hints: Sequence[Box] = ()

    def brief(self, state: EpisodeState) -> Update:
        """Open the conversation with the task and the free overview."""
        environment = self.environment
        overview, coordinates = environment.overview(), self.faces.coordinates
        shown = Shown.of(0, overview)
        parts = [
            {"text": prompts.task(environment.query, environment.budget, self.faces, shown)},
            {"text": coordinates.caption("Overview of the search region", shown, overview, shown)},
            {"image": overview.sha256},
        ]
        if self.hints:
            parts.append({"text": prompts.hints(self.hints, coordinates, shown)})
        opening = [{"role": "system", "text": prompts.system(coordinates)}, {"role": "user", "parts": parts}]
        return {"messages": opening, "shown": [shown.as_dict()]}

    def think(self, state: EpisodeState) -> Update:
        """Ask the model for its next calls, or, when it is time, for its report alone."""
        restore(self.environment, state)
        why = reason_to_force(self.environment, state)
        messages = list(state["messages"])
        if why:
            messages.append(self._demand(why, _shown(state), again=state["forced"] > 0))
        schemas = (self.faces.only(REPORT_TOOL) if why else self.faces).schemas()
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
        steps, replies, parsed, shown = state["steps"], [], False, _shown(state)
        for index in range(len(state["pending"])):
            reply, counted = self._answer(state, index, steps, shown)
            steps += counted
            parsed = parsed or reply.parsed
            if reply.view is not None:
                shown.append(Shown.of(len(shown), reply.view))
            replies.append(self._tool_message(state, index, reply, steps, shown))
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
            "shown": [one.as_dict() for one in shown],
            "rois": [roi.as_dict() for roi in self.environment.rois],
            "report": report_as_dict(self.environment.report_made),
        }

    def close(self, state: EpisodeState) -> Update:
        """Leave the environment's counters as the state has them."""
        restore(self.environment, state)
        return {}

    def _answer(self, state: EpisodeState, index: int, steps: int, shown: Sequence[Shown]) -> tuple[ToolReply, int]:
        """Return the reply to one call and the steps it took."""
        call = state["pending"][index]
        name, forced, limit = call["name"], state["forced"] > 0, max_steps(self.environment.budget)
        if self.environment.finished:
            return ToolReply({"error": "the report was accepted before: the episode has ended"}), 0
        if forced and index > 0:
            return ToolReply({"error": "only the first call of this turn counts"}), 0
        if not forced and steps >= (limit if name == REPORT_TOOL else limit - 1):
            return ToolReply({"error": f"no step is left for {name}: report with {REPORT_TOOL}"}), 0
        offered = self.faces.only(REPORT_TOOL) if forced else self.faces
        # The second try of a forced turn belongs to the step of the first.
        arguments = parse_arguments(call["raw"])
        return offered.call(self.environment, name, arguments, shown), min(1, limit - steps)

    def _tool_message(
        self, state: EpisodeState, index: int, reply: ToolReply, steps: int, shown: Sequence[Shown]
    ) -> Message:
        environment, call = self.environment, state["pending"][index]
        content = {
            **reply.content,
            "rois_left": environment.rois_left,
            "steps_left": steps_left(environment, steps),
        }
        image = None
        if reply.view is not None:
            what = f"Image of {call['name']} {call['id']}"
            caption = self.faces.coordinates.caption(what, shown[-1], reply.view, shown[0])
            image = {"caption": caption, "sha256": reply.view.sha256}
        text = json.dumps(content)
        environment.recorder.event(
            f"tool:{state['turn'] - 1}:{index}",
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

    def _demand(self, why: str, shown: Sequence[Shown], again: bool) -> Message:
        text = prompts.text("again" if again else "forced")
        filled = text.format(why=why, **prompts.where(self.environment.query, self.faces.coordinates, shown[0]))
        return {"role": "user", "parts": [{"text": filled}]}


def _shown(state: EpisodeState) -> list[Shown]:
    return [Shown.from_dict(fields) for fields in state["shown"]]


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
