"""Checks of what a model sees: a number in a picture, in each place where a run may put it, and many at once."""

import re
from collections.abc import Callable, Sequence

from pathnav.model.parts import Message, text_part
from pathnav.model.probe_chart import Chart, decides
from pathnav.model.probe_finding import Finding, Result, not_asked
from pathnav.model.probe_line import Asked, Heard, Undecided, user
from pathnav.model.probe_pictures import SMALL_PX, VIEW_PX, Picture, number_picture
from pathnav.model.probe_tools import PICTURE, TOOLS
from pathnav.model.profile import Placement
from pathnav.model.text_tools import text_messages

DIGITS = 5
"""A blind guess is right once in 90,000 times."""
COUNTS = (2, 4, 8, 16)
_LEAST_TOKENS = 16  # a picture that costs less was not looked at
_TRIES = 2
_ASK = f"The picture shows a number of {DIGITS} digits. Which? Answer with its digits only."
_CAPTION = f"Picture of {PICTURE} (call00001):"
_BRIDGE = "I will look at what the tools returned."


@decides("sight", fields=("pixels_per_token",))
def probe_sight(chart: Chart) -> None:
    """Check whether the model reads a picture in a user message, and what that costs."""
    heard, pictures = _looked(chart, "sight", lambda picture: [user(picture.part(), _ASK)])
    chart.sees = _reads(heard, pictures[-1])
    seen = (
        f"it read the number {pictures[-1].number}"
        if chart.sees
        else f"it was shown {_numbers(pictures)}; {heard.quoted}"
    )
    if chart.sees:
        _measure(chart, heard)
        facts = {"image_tokens": chart.image_tokens}
        chart.add(Finding("sight", Result.YES, f"{seen} in a picture of 1,024 x 1,024 px", facts=facts))
        return
    means = (
        "the server takes no images: no run is possible"
        if heard.reply is None
        else "the model does not see images: it answers, but not from the pixels; scores would say nothing"
    )
    change = "serve a vision model (llama.cpp: with its --mmproj file), or name another --model"
    chart.add(Finding("sight", Result.NO, seen, means, change, {"refused": heard.reply is None}))


def _measure(chart: Chart, heard: Heard) -> None:
    """Learn from the server's count what the picture cost: the same question without it is the rest."""
    try:
        alone = chart.line.ask(Asked("image_tokens", [user(_ASK)]))
    except Undecided as error:  # what it saw, it saw
        chart.leave_open({"pixels_per_token": error.sentence})
        return
    counts = [one.reply.tokens.input for one in (heard, alone) if one.reply and one.reply.tokens]
    if len(counts) < 2 or counts[0] - counts[1] < _LEAST_TOKENS:
        chart.leave_open({"pixels_per_token": "the server's usage does not tell what an image costs"})
        return
    chart.image_tokens = counts[0] - counts[1]
    chart.decide(pixels_per_token=round(VIEW_PX[0] * VIEW_PX[1] / chart.image_tokens, 1))


def _looked(
    chart: Chart, probe: str, messages: Callable[[Picture], Sequence[Message]], tools: Sequence[Message] = ()
) -> tuple[Heard, list[Picture]]:
    """Return the answer to a number picture, of a second one where the first was answered and misread."""
    pictures: list[Picture] = []
    while True:
        picture = number_picture(chart.rng, DIGITS)
        pictures.append(picture)
        heard = chart.line.ask(Asked(probe, messages(picture), tools, picture.number, [picture.sha256]))
        if heard.reply is None or _reads(heard, picture) or len(pictures) == _TRIES:
            return heard, pictures


def _reads(heard: Heard, picture: Picture) -> bool:
    """Return whether an answer, or the arguments of its calls, hold the number."""
    if heard.reply is None:
        return False
    said = " ".join([heard.text, *(call.raw for call in heard.reply.calls)])
    joined = re.sub(r"(?<=\d)[ ,.'_-](?=\d)", "", said)  # some write the digits one by one
    return picture.number in re.findall(r"\d+", f"{said} | {joined}")


def _numbers(pictures: Sequence[Picture]) -> str:
    return " and ".join(picture.number for picture in pictures)


@decides("placement", fields=("placement",))
def probe_placements(chart: Chart) -> None:
    """Check in which places the model sees a picture that came as the result of a tool call."""
    chart.rest_on("sight")
    if not chart.sees:
        chart.add(not_asked("placement", "it sees no picture at all"))
        return
    chart.rest_on("tools")
    if chart.acts is None:
        chart.rest_on("text_protocol")
    if chart.acts != "native":
        _probe_text_placement(chart)
        return
    states: dict[str, str] = {}
    unanswered: list[Undecided] = []
    for placement in Placement:
        states[placement.value] = _state_of(chart, placement, unanswered)
    chosen = next((name for name, state in states.items() if state == "seen"), None)
    chart.placed = chosen is not None
    if chosen is None and unanswered:
        raise unanswered[0]
    seen = "; ".join(f"{name}: {state}" for name, state in states.items())
    if chosen is None:
        means = "the model sees pictures, but none that a tool returns: with native tools it would navigate blind"
        chart.add(Finding("placement", Result.NO, seen, means, "run it by the text protocol: --profile text", states))
        _fall_back(chart)
        return
    result = Result.YES if set(states.values()) == {"seen"} else Result.PARTLY
    means = f"images of tool calls go by placement {chosen}"
    chart.add(Finding("placement", result, seen, means, facts=states), placement=chosen)


def _state_of(chart: Chart, placement: Placement, unanswered: list[Undecided]) -> str:
    """Return what becomes of a picture in a place; where only this question went unanswered, the others still count."""
    try:
        heard, pictures = _looked(chart, f"placement_{placement.value}", lambda p: placed(p, placement), TOOLS)
    except Undecided as error:
        if chart.line.outage:
            raise
        unanswered.append(error)
        return f"undecided ({error.sentence})"
    return _state(heard, pictures)


def _fall_back(chart: Chart) -> None:
    """Take the text protocol where the model follows it and no native placement is seen."""
    by_text = any(one.probe == "text_protocol" and one.result is Result.YES for one in chart.findings)
    chart.leave_open({"placement": "no placement was seen"})
    if by_text:
        chart.acts = "text"
        chart.decide(tools="text")
        _probe_text_placement(chart)


@decides("placement_text", fields=("placement",))
def _probe_text_placement(chart: Chart) -> None:
    """Check a picture in a conversation of the text protocol, where every image stands in a user message."""
    heard, pictures = _looked(
        chart, "placement_text", lambda picture: text_messages(placed(picture, Placement.USER_AFTER_TOOLS), TOOLS)
    )
    state = _state(heard, pictures)
    chart.placed = state == "seen"
    result = Result.YES if chart.placed else Result.NO
    means = "" if chart.placed else "the model loses its pictures in a conversation: it would navigate blind"
    chart.add(
        Finding("placement_text", result, f"in the text protocol the picture of an action is: {state}", means),
        placement=Placement.USER_AFTER_TOOLS.value,
    )


def _state(heard: Heard, pictures: Sequence[Picture]) -> str:
    """Return what became of a picture: seen, refused, or not seen."""
    if heard.reply is None:
        return f"refused ({heard.sentence})"
    return "seen" if _reads(heard, pictures[-1]) else f"not seen (shown {_numbers(pictures)}; {heard.quoted})"


def placed(picture: Picture, placement: Placement) -> list[Message]:
    """Return a conversation whose picture came as the result of a tool call, as a run would send it."""
    call = {"id": "call00001", "type": "function", "function": {"name": PICTURE, "arguments": '{"place": "left"}'}}
    shown = [text_part(_CAPTION), picture.part()]
    task = f"Take one picture of the left. {_ASK} Take no further picture."
    sent: list[Message] = [
        user(text_part(task)),
        {"role": "assistant", "content": "I will take it.", "tool_calls": [call]},
    ]
    text = '{"place": "left"}'
    if placement is Placement.TOOL:
        return [*sent, {"role": "tool", "tool_call_id": call["id"], "content": [text_part(text), *shown]}]
    sent.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    bridge = [{"role": "assistant", "content": _BRIDGE}] if placement is Placement.BRIDGE else []
    return [*sent, *bridge, user(*shown)]


@decides("images_per_request", fields=("images_per_request",))
def probe_many(chart: Chart) -> None:
    """Check how many pictures a request may hold."""
    chart.rest_on("sight")
    if not chart.sees:
        chart.add(not_asked("images_per_request", "it sees no picture at all"))
        return
    most = 1
    for count in COUNTS:
        pictures = [number_picture(chart.rng, 3, SMALL_PX) for _ in range(count)]
        ask = f"Each of the {count} pictures shows a number of 3 digits. Write all of them in order, blanks between."
        shown = [picture.part() for picture in pictures]
        truth = [picture.number for picture in pictures]
        heard = chart.line.ask(
            Asked("images_per_request", [user(*shown, ask)], (), truth, [picture.sha256 for picture in pictures])
        )
        missed = [number for number in truth if number not in re.findall(r"\d+", heard.text)]
        if heard.reply is None or missed:
            _add_limit(chart, most, count, heard, missed)
            return
        most = count
    seen = f"all of {most} pictures in one request were read"
    chart.add(
        Finding("images_per_request", Result.YES, seen, facts={"read": most, "failed": None}), images_per_request=None
    )


def _add_limit(chart: Chart, most: int, count: int, heard: Heard, missed: Sequence[str]) -> None:
    """Add what is known where a request had too many pictures."""
    facts = {"read": most, "failed": count, "refused": heard.reply is None}
    means = f"a request holds at most {most}: older images leave the conversation, a line of text stays"
    change = "raise the server's limit (vLLM: --limit-mm-per-prompt)"
    if heard.reply is None:
        seen = (
            f"{most} in one request {'was' if most == 1 else 'were all'} read, {count} are refused: it {heard.sentence}"
        )
    else:
        seen = (
            f"of {count} pictures in one request {len(missed)} were not read ({', '.join(missed[:4])}); {heard.quoted}"
        )
    result = Result.PARTLY if most > 1 else Result.NO
    chart.add(Finding("images_per_request", result, seen, means, change, facts), images_per_request=most)
