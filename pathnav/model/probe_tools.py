"""Checks of how a model acts: the API's tool calls, what makes it call, the text protocol, structured answers."""

import json
import re
from collections.abc import Sequence
from typing import Any

from pathnav.model.json_action import parse_actions
from pathnav.model.parts import Message
from pathnav.model.probe_chart import Chart
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
_CUT_ACTION = re.compile(r'\{\s*"tool"\s*:\s*"take_picture"')
_TASK = f"Call the tool {PICTURE} with the place “left”. Do nothing else."


def probe_tools(chart: Chart) -> None:
    """Check tool calling, and the text protocol, which is the way for models without."""
    heard = chart.line.ask(Asked("tools", [user(_TASK)], TOOLS, truth={"name": PICTURE, "place": "left"}))
    works = _is_right(heard.reply.calls if heard.reply else ())
    chart.add(_tools_finding(heard, works))
    if works:
        _probe_parallel(chart)
        _probe_later(chart)
    if heard.reply is not None:
        _probe_choices(chart, decides=works)
    held = Structured.NONE if works else _probe_structured(chart)
    by_text = _probe_text(chart, held)
    chart.acts = "native" if works else "text" if by_text else None
    tools = ToolCalling.NATIVE if works else ToolCalling.TEXT
    if chart.acts is None:
        chart.leave_open({"tools": "it called no tool in either way"})
    else:
        chart.fields["tools"] = tools.value
    if chart.acts == "text":
        chart.fields["tool_choice"] = ToolChoice.AUTO.value  # the text protocol sends none


def _is_right(calls: Sequence[ToolCall]) -> bool:
    """Return whether the first call is the one that was asked for, with readable arguments."""
    if not calls or calls[0].name != PICTURE or not calls[0].arguments:
        return False
    return "left" in str(calls[0].arguments.get("place", "")).lower()


def _tools_finding(heard: Heard, works: bool) -> Finding:
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


def _probe_parallel(chart: Chart) -> None:
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


def _probe_later(chart: Chart) -> None:
    """Check whether it calls a tool again, with arguments that can be read, once the first call has been answered."""
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
        cut = " (its tokens were used up)" if heard.reply and heard.reply.finish_reason == "length" else ""
        seen = f"behind an answered call, its arguments are no JSON object{cut}: {calls[0].raw[:80]!r}"
        means = "such a turn is lost and asked again: some episodes may end as format_errors"
        chart.add(Finding("later_calls", Result.PARTLY, seen, means, "give it room: --max-tokens 4096"))
    elif calls:
        chart.add(Finding("later_calls", Result.YES, "it calls again once a call has been answered"))
    else:
        seen = f"behind an answered call it calls no more, though told to: {heard.quoted}"
        means = "its episodes may end after one look, without a box"
        chart.add(Finding("later_calls", Result.NO, seen, means, "compare with the text protocol: --profile text"))


def _probe_choices(chart: Chart, decides: bool) -> None:
    """Find what makes the model call a tool that it would not call by itself.

    Args:
        chart: What is known.
        decides: Whether the finding goes into the profile; not where the text protocol is the way to act.
    """
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
    if decides:
        chart.fields["tool_choice"] = chosen.value


def _probe_text(chart: Chart, held: Structured) -> bool:
    """Return whether the model acts by the text protocol, its answer held to an action where the server can do so."""
    truth = {"name": PICTURE, "place": "left"}
    messages, form = text_messages([user(_TASK)], TOOLS), response_format(held, TOOLS)
    heard = chart.line.ask(Asked("text_protocol", messages, truth=truth, response_format=form))
    reply = with_actions(heard.reply, TOOLS, ()) if heard.reply else None
    works = _is_right(reply.calls if reply else ())
    if works:
        where = "" if held is Structured.NONE else f", its answer held to {held.value}"
        seen = f"it writes one JSON action when the tools stand in the prompt{where}"
        chart.add(Finding("text_protocol", Result.YES, seen, "tools: text is a way to run it"))
    else:
        result = Result.PARTLY if reply and reply.calls and reply.calls[0].name else Result.NO
        seen = f"it does not write the action that it is told to: {heard.quoted}"
        means = "a model that follows neither way of acting ends its episodes without a box (format_errors)"
        chart.add(Finding("text_protocol", result, seen, means))
    return works


def _probe_structured(chart: Chart) -> Structured:
    """Find what holds an answer to the form of an action, and return it."""
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
    return Structured(chosen)


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
