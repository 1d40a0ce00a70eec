"""The LangGraph state machine of the VLM agent: brief -> think -> act -> think ... -> close.

`think` asks the model, `act` answers each of its calls, one after the other and in their order. What a node writes goes
to the recorder under a name that depends on the turn alone: an episode that was killed runs from its beginning, takes
every reply on record from there, and leaves the same record.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from pathnav.cohort.protocol import FORCED_TRIES, MAX_SILENT_ANSWERS, max_steps
from pathnav.errors import ContextOverflow
from pathnav.geometry import Box
from pathnav.localise import prompts
from pathnav.localise.conversation import Message, RecordedChat
from pathnav.localise.coordinates import Shown
from pathnav.localise.environment import Environment
from pathnav.localise.outcome import Outcome
from pathnav.localise.tool import REPORT_TOOL, OfferedTools, ToolReply
from pathnav.model import Reply, ToolCall
from pathnav.model.reply import parse_arguments

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

UNPARSED_TURNS = 3
"""So many turns in a row that could not be parsed, and no valid box, make the outcome `format_errors`."""

Update = dict[str, Any]


class EpisodeState(TypedDict):
    """What the graph carries from node to node; looks, steps and the report are the environment's.

    `messages` is the history (see `pathnav.localise.conversation`), `pending` the calls that wait for a reply, `shown`
    are the images so far, `turn` is the number of requests made, `silent` and `unparsed` count turns in a row, `forced`
    counts forced turns, `ending` is how the episode ended, None where it goes on.
    """

    messages: list[Message]
    pending: Sequence[ToolCall]
    shown: list[Shown]
    turn: int
    silent: int
    unparsed: int
    forced: int
    ending: Outcome | None


def first_state() -> EpisodeState:
    """Return the state before anything happened."""
    return EpisodeState(messages=[], pending=(), shown=[], turn=0, silent=0, unparsed=0, forced=0, ending=None)


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of the graph over one environment, a chat endpoint, the tools on offer and windows as hints."""

    environment: Environment
    chat: RecordedChat
    tools: OfferedTools
    hints: Sequence[Box] = ()

    def brief(self, state: EpisodeState) -> Update:
        """Open the conversation with the task and the free overview."""
        environment = self.environment
        overview, coordinates = environment.overview(), self.tools.coordinates
        shown = Shown.of(0, overview)
        parts = [
            {"text": prompts.task(environment.query, environment.budget, coordinates, shown)},
            {"text": coordinates.caption("Overview of the search region", shown, overview, shown)},
            {"image": overview.sha256},
        ]
        if self.hints:
            parts.append({"text": prompts.hints(self.hints, coordinates, shown)})
        opening = [{"role": "system", "text": prompts.system(coordinates)}, {"role": "user", "parts": parts}]
        return {"messages": opening, "shown": [shown]}

    def think(self, state: EpisodeState) -> Update:
        """Ask the model for its next calls, or, when it is time, for its report alone."""
        why = self._reason_to_force(state["silent"], state["forced"])
        messages = list(state["messages"])
        if why:
            messages.append(self._demand(why, state["shown"][0], again=state["forced"] > 0))
        schemas = (self.tools.only(REPORT_TOOL) if why else self.tools).schemas()
        try:
            reply = self.chat.take_turn(state["turn"], messages, schemas, REPORT_TOOL if why else None)
        except ContextOverflow:
            return {"ending": Outcome.CONTEXT_OVERFLOW}
        update: Update = {
            "messages": [*messages, _assistant_message(reply)],
            "pending": reply.calls,
            "turn": state["turn"] + 1,
            "forced": state["forced"] + (1 if why else 0),
        }
        if reply.refused and not reply.calls:
            update["ending"] = Outcome.REFUSED
            self.environment._set_steps(self.environment.steps + 1)
        return update

    def act(self, state: EpisodeState) -> Update:
        """Answer every call of the last turn in order, or remind a model that made none."""
        environment, calls = self.environment, state["pending"]
        steps, shown, parsed = environment.steps, list(state["shown"]), False
        replies: list[Message] = []
        for index, call in enumerate(calls):
            reply, counted = self._answer(call, steps, shown, state["forced"] > 0, is_first=index == 0)
            steps += counted
            parsed = parsed or reply.parsed
            if reply.view is not None:
                shown.append(Shown.of(len(shown), reply.view))
            replies.append(self._tool_message(f"tool:{state['turn'] - 1}:{index}", call, reply, steps, shown))
        silent = 0 if calls else state["silent"] + 1
        environment._set_steps(steps if calls else min(steps + 1, max_steps(environment.budget)))
        if not calls and self._reason_to_force(silent, state["forced"]) is None:
            replies.append(self._reminder())
        return {
            "messages": [*state["messages"], *replies],
            "pending": (),
            "silent": silent,
            "unparsed": 0 if parsed else state["unparsed"] + 1,
            "shown": shown,
        }

    def close(self, state: EpisodeState) -> Update:
        """Tell how the episode ended."""
        if self.environment.finished:
            return {"ending": Outcome.FORCED if state["forced"] else Outcome.FINISHED}
        is_unparsed = state["unparsed"] >= UNPARSED_TURNS
        return {"ending": state["ending"] or (Outcome.FORMAT_ERRORS if is_unparsed else Outcome.NO_REPORT)}

    def after_act(self, state: EpisodeState) -> str:
        """Return the node that follows `act`."""
        return "close" if self.environment.finished or state["forced"] >= FORCED_TRIES else "think"

    def _steps_left(self, steps: int) -> int:
        """Return the steps that are left of 3 x budget + 6."""
        return max(0, max_steps(self.environment.budget) - steps)

    def _reason_to_force(self, silent: int, forced: int) -> str | None:
        """Return why the next turn must be the forced one, or None."""
        if self.environment.rois_left <= 0:
            return "The ROI budget is spent."
        if self._steps_left(self.environment.steps) <= 1:
            return "One step is left."
        if silent >= MAX_SILENT_ANSWERS:
            return f"{MAX_SILENT_ANSWERS} answers in a row had no tool call."
        return "No valid report was received." if forced else None

    def _answer(
        self, call: ToolCall, steps: int, shown: Sequence[Shown], forced: bool, *, is_first: bool
    ) -> tuple[ToolReply, int]:
        """Return the reply to one call and the steps it took."""
        limit = max_steps(self.environment.budget)
        if self.environment.finished:
            return ToolReply({"error": "the report was accepted before: the episode has ended"}), 0
        if forced and not is_first:
            return ToolReply({"error": "only the first call of this turn counts"}), 0
        if not forced and steps >= (limit if call.name == REPORT_TOOL else limit - 1):
            return ToolReply({"error": f"no step is left for {call.name}: report with {REPORT_TOOL}"}), 0
        offered = self.tools.only(REPORT_TOOL) if forced else self.tools
        arguments = parse_arguments(call.raw)  # of the text alone, as where the reply comes from the record
        # The second try of a forced turn belongs to the step of the first.
        return offered.call(self.environment, call.name, arguments, shown), min(1, limit - steps)

    def _tool_message(
        self, event_id: str, call: ToolCall, reply: ToolReply, steps: int, shown: Sequence[Shown]
    ) -> Message:
        """Take down a reply and return it as a message; of a view, `shown` has the last place."""
        left = {"rois_left": self.environment.rois_left, "steps_left": self._steps_left(steps)}
        text, image = json.dumps({**reply.content, **left}), None
        if reply.view is not None:
            what = f"Image of {call.name} {call.id}"
            caption = self.tools.coordinates.caption(what, shown[-1], reply.view, shown[0])
            image = {"caption": caption, "sha256": reply.view.sha256}
        told = {"call_id": call.id, "name": call.name}
        self.environment.recorder.event(
            event_id, "tool", step=steps, **told, arguments=call.raw, reply=text, image=image
        )
        return {"role": "tool", **told, "text": text, "image": image}

    def _reminder(self) -> Message:
        left = self._steps_left(self.environment.steps)
        text = prompts.text("reminder").format(rois_left=self.environment.rois_left, steps_left=left)
        return {"role": "user", "parts": [{"text": text}]}

    def _demand(self, why: str, overview: Shown, again: bool) -> Message:
        text = prompts.text("again" if again else "forced")
        filled = text.format(why=why, **prompts.where(self.environment.query, self.tools.coordinates, overview))
        return {"role": "user", "parts": [{"text": filled}]}


def _assistant_message(reply: Reply) -> Message:
    """Return the turn as it is sent again: calls in their order, arguments always the text of a JSON object."""
    calls = [{"id": call.id, "name": call.name, "arguments": call.resent} for call in reply.calls]
    return {"role": "assistant", "text": reply.text, "calls": calls}


def _after_think(state: EpisodeState) -> str:
    return "close" if state["ending"] else "act"


def build_graph(nodes: Nodes) -> "CompiledStateGraph[EpisodeState, None, Any, Any]":
    """Return the compiled state machine, which keeps nothing on disk: what a model answered is on record."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(EpisodeState)
    graph.add_node("brief", nodes.brief)
    graph.add_node("think", nodes.think)
    graph.add_node("act", nodes.act)
    graph.add_node("close", nodes.close)
    graph.add_edge(START, "brief")
    graph.add_edge("brief", "think")
    graph.add_conditional_edges("think", _after_think, ["act", "close"])
    graph.add_conditional_edges("act", nodes.after_act, ["think", "close"])
    graph.add_edge("close", END)
    return graph.compile()
