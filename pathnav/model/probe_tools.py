"""Checks of how a model acts: the API's tool calls, what makes it call, the text protocol, structured answers."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pathnav.model.json_action import parse_actions
from pathnav.model.parts import Message
from pathnav.model.probe_chart import Chart, decides
from pathnav.model.probe_finding import Finding, Result
from pathnav.model.probe_line import Asked, Heard, user
from pathnav.model.profile import Structured, ToolCalling, ToolChoice
from pathnav.model.reply import ToolCall
from pathnav.model.text_tools import response_format, text_messages, with_actions

PICTURE, NUMBER = "take_picture", "tell_number"


def _schema(name: str, described: str, argument: str, kind: str) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {argument: {"type": kind, "description": f"The {argument}."}},
        "required": [argument],
    }
    return {"type": "function", "function": {"name": name, "description": described, "parameters": parameters}}


TOOLS = (
    _schema(PICTURE, "Take a picture and look at it.", "place", "string"),
    _schema(NUMBER, "Tell a number to the user.", "number", "integer"),
)
_NAMES = (PICTURE, NUMBER)
_CUT_OBJECT = re.compile(r"\{\s*\"")  # what is held to a form begins with it, however long it goes on
_BEGUN = re.compile(r'\{\s*"tool')
_CUT_ACTION = re.compile(r'\{\s*"tool"\s*:\s*"take_picture"')
_TASK = f"Call the tool {PICTURE} with the place “left”. Do nothing else."
_AGAIN = f"Your call was cut off. {_TASK}"
_TRIES = 3
_ROOM = "give it room: --max-tokens 4096"


def probe_tools(chart: Chart) -> None:
    """Check tool calling, and the text protocol, which is the way for models without."""
    _probe_calls(chart)
    unknown = chart.result_of("tools") is Result.UNDECIDED
    if unknown or chart.calls_tools:
        _probe_parallel(chart)
        _probe_later(chart)
    if unknown or chart.takes_tools:
        _probe_choices(chart)
    if unknown or not chart.calls_tools:
        _probe_structured(chart)
    _probe_text(chart)


@decides("tools", fields=("tools",))
def _probe_calls(chart: Chart) -> None:
    asked = Asked("tools", [user(_TASK)], TOOLS, truth={"name": PICTURE, "place": "left"})
    heard, cut = _whole(chart, asked, _calls)
    works = _is_right(_calls(heard))
    chart.takes_tools, chart.calls_tools, chart.cut_off = heard.reply is not None, works, cut > 0 and not works
    chart.add(_tools_finding(heard, works, cut))
    if works:
        chart.acts = "native"
        chart.decide(tools=ToolCalling.NATIVE.value)


def _calls(heard: Heard) -> Sequence[ToolCall]:
    return heard.reply.calls if heard.reply else ()


def _whole(chart: Chart, asked: Asked, calls_of: Callable[[Heard], Sequence[ToolCall]]) -> tuple[Heard, int]:
    """Return an answer, and how often it was cut off in the middle of a call; then it is asked to call again.

    A model that runs out of tokens now and then does call: a run tells it so and goes on, and so does this.
    """
    messages, heard = list(asked.messages), chart.line.ask(asked)
    cut = 0
    while heard.reply and _is_cut(heard, calls_of(heard)):
        cut += 1
        if cut == _TRIES:
            break
        messages += [{"role": "assistant", "content": "I will call it."}, user(_AGAIN)]
        heard = chart.line.ask(replace(asked, messages=messages))
    return heard, cut


def _is_cut(heard: Heard, calls: Sequence[ToolCall]) -> bool:
    """Return whether an answer ended in the middle of a call."""
    if calls:
        return calls[0].arguments is None and _is_unfinished(heard)
    return _is_unfinished(heard) and bool(_BEGUN.search(heard.text))


def _is_unfinished(heard: Heard) -> bool:
    return heard.reply is not None and heard.reply.finish_reason == "length"


def _is_right(calls: Sequence[ToolCall]) -> bool:
    """Return whether the first call is the one that was asked for, with readable arguments."""
    if not calls or calls[0].name != PICTURE or not calls[0].arguments:
        return False
    return "left" in str(calls[0].arguments.get("place", "")).lower()


def _tools_finding(heard: Heard, works: bool, cut: int) -> Finding:
    if cut:
        again = f"asked again, it {'was whole' if works else 'was cut off each time'}"
        seen = f"it calls tools, but the arguments of its call were cut off (its tokens were used up); {again}"
        return Finding("tools", Result.PARTLY, seen, _LOST, _ROOM, {"cut_off": cut})
    if works:
        return Finding("tools", Result.YES, "it calls tools, with arguments that are valid JSON")
    means = "a run goes by the text protocol: tools in the prompt, one JSON action in the answer (tools: text)"
    if heard.reply is None:
        return Finding("tools", Result.NO, f"a request with tools fails: it {heard.sentence}", means, _SERVE)
    calls = heard.reply.calls
    if calls and calls[0].arguments is None:
        seen = f"it calls {calls[0].name}, but its arguments are no JSON object: {calls[0].raw[:80]!r}"
        return Finding("tools", Result.PARTLY, seen, means)
    if calls:
        return Finding("tools", Result.PARTLY, f"it does not call what it is told to: {heard.quoted}", means)
    if parse_actions(heard.text, _NAMES).actions:
        seen = f"it writes its call into the text, where the server does not find it: {heard.quoted}"
        return Finding("tools", Result.PARTLY, seen, means, _SERVE)
    return Finding("tools", Result.NO, f"it does not call a tool when told to: {heard.quoted}", means)


_SERVE = (
    "if the model knows tools, start its server with them (vLLM: --enable-auto-tool-choice --tool-call-parser NAME; "
    "SGLang: --tool-call-parser NAME; llama.cpp: --jinja)"
)


_LOST = "such a turn is lost and asked again: some episodes may end as format_errors"


@decides("parallel_calls")
def _probe_parallel(chart: Chart) -> None:
    chart.rest_on("tools")
    task = f"Call the tool {PICTURE} twice in one answer: with the place “left” and with the place “right”."
    heard = chart.line.ask(Asked("parallel_calls", [user(task)], TOOLS, truth=2))
    made = len(heard.reply.calls) if heard.reply else 0
    if made >= 2:
        means = "several looks may come in one step; each counts"
        chart.add(
            Finding("parallel_calls", Result.YES, f"{made} calls came in one answer", means, facts={"calls": made})
        )
    else:
        seen = f"{made} of 2 calls came in one answer" if heard.reply else f"asking for two fails: it {heard.sentence}"
        means = "one look a step; nothing need be changed"
        chart.add(Finding("parallel_calls", Result.NO, seen, means, facts={"calls": made}))


@decides("later_calls")
def _probe_later(chart: Chart) -> None:
    """Check whether it calls a tool again, with arguments that can be read, once the first call has been answered."""
    chart.rest_on("tools")
    first = {"name": PICTURE, "arguments": '{"place": "left"}'}
    messages: list[Message] = [
        user(f"Call the tool {PICTURE} first with the place “left” and, once that is done, with the place “right”."),
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call00001", "type": "function", "function": first}],
        },
        {"role": "tool", "tool_call_id": "call00001", "content": '{"done": true}'},
    ]
    heard = chart.line.ask(Asked("later_calls", messages, TOOLS, truth={"name": PICTURE, "place": "right"}))
    calls = heard.reply.calls if heard.reply else ()
    if calls and calls[0].arguments is None:
        what = "were cut off (its tokens were used up)" if _is_unfinished(heard) else "are no JSON object"
        seen = f"behind an answered call, its arguments {what}: {calls[0].raw[:80]!r}"
        chart.add(Finding("later_calls", Result.PARTLY, seen, _LOST, _ROOM))
    elif calls:
        chart.add(Finding("later_calls", Result.YES, "it calls again once a call has been answered"))
    else:
        seen = f"behind an answered call it calls no more, though told to: {heard.quoted}"
        means = "its episodes may end after one look, without a box"
        chart.add(Finding("later_calls", Result.NO, seen, means, "compare with the text protocol: --profile text"))


@decides("tool_choice", fields=("tool_choice",))
def _probe_choices(chart: Chart) -> None:
    """Find what makes the model call a tool that it would not call by itself.

    It goes into the profile, but where the text protocol is the way to act.
    """
    chart.rest_on("tools")
    heeded: dict[str, bool] = {}
    said: list[str] = []
    for choice in (ToolChoice.NAMED, ToolChoice.REQUIRED):
        messages = [user("Say hello in one word. The number 7 is lucky.")]
        heard = chart.line.ask(Asked("tool_choice", messages, TOOLS, required_tool=NUMBER, tool_choice=choice))
        calls = heard.reply.calls if heard.reply else ()
        wanted = (NUMBER,) if choice is ToolChoice.NAMED else _NAMES
        heeded[choice.value] = bool(calls) and calls[0].name in wanted
        state = "is heeded" if heeded[choice.value] else f"is not heeded ({heard.quoted})"
        said.append(f"a {'named tool' if choice is ToolChoice.NAMED else 'required call'} {state}")
    chosen = next(
        (choice for choice in (ToolChoice.NAMED, ToolChoice.REQUIRED) if heeded[choice.value]), ToolChoice.AUTO
    )
    result = Result.YES if all(heeded.values()) else Result.PARTLY if any(heeded.values()) else Result.NO
    means = {
        ToolChoice.NAMED: "the report can be asked for by name",
        ToolChoice.REQUIRED: "where the report is due, some call is required, and the prompt says which",
        ToolChoice.AUTO: "where the report is due, only the prompt asks for it: more episodes may end without a box",
    }[chosen]
    chart.add(Finding("tool_choice", result, "; ".join(said), means, facts=heeded))
    if chart.calls_tools:
        chart.decide(tool_choice=chosen.value)


@decides("text_protocol", fields=("tools", "tool_choice"))
def _probe_text(chart: Chart) -> None:
    """Check whether it acts by the text protocol, its answer held to an action where the server can do so."""
    held = Structured.NONE if chart.calls_tools else Structured(chart.fields.get("structured_output", "none"))
    truth = {"name": PICTURE, "place": "left"}
    messages, form = text_messages([user(_TASK)], TOOLS), response_format(held, TOOLS)
    asked = Asked("text_protocol", messages, truth=truth, response_format=form)
    heard, cut = _whole(chart, asked, _written)
    calls = _written(heard)
    works = _is_right(calls)
    if works:
        where = "" if held is Structured.NONE else f", its answer held to {held.value}"
        seen = f"it writes one JSON action when the tools stand in the prompt{where}"
        result, facts = (Result.PARTLY, {"cut_off": cut}) if cut else (Result.YES, {})
        seen += "; its first was cut off (its tokens were used up), and asked again it was whole" if cut else ""
        means = "tools: text is a way to run it"
        chart.add(Finding("text_protocol", result, seen, means, _ROOM if cut else None, facts))
    elif cut:
        seen = f"it writes JSON actions, but each of {cut} was cut off (its tokens were used up)"
        chart.add(Finding("text_protocol", Result.PARTLY, seen, _LOST, _ROOM, {"cut_off": cut}))
    else:
        result = Result.PARTLY if calls and calls[0].name else Result.NO
        seen = f"it does not write the action that it is told to: {heard.quoted}"
        means = "a model that follows neither way of acting ends its episodes without a box (format_errors)"
        chart.add(Finding("text_protocol", result, seen, means))
    _decide_way(chart, works, cut_off=cut > 0)


def _decide_way(chart: Chart, by_text: bool, cut_off: bool) -> None:
    """Note in which way the model acts, unless its own tool calls are that, or nobody knows."""
    if chart.calls_tools or chart.result_of("tools") is Result.UNDECIDED:
        return
    chart.cut_off = not by_text and (chart.cut_off or cut_off)
    if by_text:
        chart.acts = "text"
        chart.decide(tools=ToolCalling.TEXT.value, tool_choice=ToolChoice.AUTO.value)  # the text protocol sends none
    else:
        why = "its calls were cut off" if chart.cut_off else "it called no tool in either way"
        chart.leave_open({"tools": why})


def _written(heard: Heard) -> Sequence[ToolCall]:
    """Return the actions in a text."""
    return with_actions(heard.reply, TOOLS, ()).calls if heard.reply else ()


@decides("structured_output", fields=("structured_output",))
def _probe_structured(chart: Chart) -> None:
    """Find what holds an answer to the form of an action."""
    chart.rest_on("tools")
    obeyed: dict[str, str] = {}
    for structured in (Structured.JSON_SCHEMA, Structured.JSON_OBJECT):
        form = response_format(structured, TOOLS[:1])
        messages = [user("Say hello in one word, as JSON.")]
        heard = chart.line.ask(Asked("structured_output", messages, response_format=form))
        obeyed[structured.value] = _obeyed(heard, structured)
    chosen = next((name for name, state in obeyed.items() if state == "obeyed"), Structured.NONE.value)
    seen = ", ".join(f"{name} is {state}" for name, state in obeyed.items())
    result = Result.NO if chosen == Structured.NONE.value else Result.YES
    means = (
        "answers of the text protocol are held to an action" if result is Result.YES else "answers are held to nothing"
    )
    chart.add(Finding("structured_output", result, seen, means, facts=obeyed), structured_output=chosen)


def _obeyed(heard: Heard, structured: Structured) -> str:
    """Return whether an answer has the form that was asked for."""
    if heard.reply is None:
        return "refused"
    if heard.reply.finish_reason == "length":
        begins = _CUT_ACTION if structured is Structured.JSON_SCHEMA else _CUT_OBJECT
        return "obeyed" if begins.match(heard.text) else "ignored"
    found = _object(heard.text)
    if found is None:
        return "ignored"
    is_action = found.get("tool") == PICTURE and isinstance(found.get("arguments"), dict)
    return "obeyed" if is_action or structured is Structured.JSON_OBJECT else "ignored"


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, and nothing else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
