"""Check in what coordinates a model answers, by boxes of coloured squares."""

import math
from collections.abc import Mapping

from pathnav.model.probe_boxes import FITS, Decision, decide, four_numbers, level0_off
from pathnav.model.probe_chart import Chart, decides
from pathnav.model.probe_finding import Finding, Result, not_asked
from pathnav.model.probe_line import Asked, user
from pathnav.model.probe_pictures import BOARD_BOX, BOARD_PX, COLOURS, board_picture
from pathnav.model.profile import BoxForm, Frame

LEVEL0_SQUARES = 3
_HOW = "Where is the {colour} square in the picture? Answer with its bounding box as four numbers, and nothing else."
_LEVEL0 = (
    "The picture shows the box x={x:.0f}, y={y:.0f}, w={w:.0f}, h={h:.0f} of a slide, in level-0 pixels; ticks along "
    "its edges carry level-0 coordinates. Where is the {colour} square? Answer with its bounding box [x, y, w, h] in "
    "level-0 pixels of the slide (upper left corner, width, height), and nothing else."
)


@decides("frame", fields=("frame", "box"))
def probe_frame(chart: Chart) -> None:
    """Check whether the model can answer in level-0 pixels when told to, and else what it counts in by itself."""
    chart.rest_on("sight")
    if not chart.sees:
        chart.add(not_asked("frame", "it sees no picture at all"))
        return
    decision = _by_itself(chart)
    off = _in_level0(chart)
    facts = {
        "level0_off": None if math.isinf(off) else round(off, 4),
        "native": decision.counting.name if decision.counting else None,
        "native_form": decision.counting.form.value if decision.counting else None,
        "native_off": None if decision.off is None else round(decision.off, 4),
        "next_off": None if decision.next_off is None else round(decision.next_off, 4),
        "read": decision.read,
    }
    by_itself = _said(decision)
    if off <= FITS:
        seen = f"told to, it answers in level-0 pixels ({off:.1%} of a side off); {by_itself}"
        means = "it can use the tools as they are: frame level0, box xywh"
        fields = {"frame": Frame.LEVEL0.value, "box": BoxForm.XYWH.value}
        chart.add(Finding("frame", Result.YES, seen, means, facts=facts), **fields)
        return
    misses = "no readable box" if math.isinf(off) else f"{min(off, 9.99):.0%} of a side off"
    seen = f"told to answer in level-0 pixels it does not ({misses}); {by_itself}"
    _add(chart, decision, seen, facts)


def _add(chart: Chart, decision: Decision, seen: str, facts: Mapping[str, object]) -> None:
    """Add what a model that does not answer in level-0 pixels counts in."""
    counting = decision.counting
    if counting is not None and counting.frame is not None:
        means = f"tools and ticks are shown to it in its own coordinates: frame {counting.frame}, box {counting.form}"
        fields = {"frame": counting.frame.value, "box": counting.form.value}
        chart.add(Finding("frame", Result.YES, seen, means, facts=facts), **fields)
        return
    why = (
        f"its boxes are {counting.name}, which no profile can declare"
        if counting
        else "its boxes fit no way of counting"
    )
    means = f"undecided: {why}; boxes that are far off would be scored as the model's navigation"
    change = "look at its model card for the coordinates it was trained on, and set frame and box in the profile"
    chart.add(Finding("frame", Result.UNDECIDED, seen, means, change, facts))
    chart.leave_open({"frame": why, "box": why})


def _by_itself(chart: Chart) -> Decision:
    """Return in what the model counts where nothing is said of it."""
    board = board_picture(chart.rng, ticks=False)
    answers = {}
    for colour in COLOURS:
        truth = {"colour": colour, "box_px": board.squares[colour].as_list()}
        messages = [user(board.part(), _HOW.format(colour=colour))]
        heard = chart.line.ask(Asked("frame", messages, (), truth, [board.sha256]))
        answers[colour] = four_numbers(heard.text)
    return decide(answers, board.squares, BOARD_PX)


def _in_level0(chart: Chart) -> float:
    """Return how far boxes are off that were asked for in level-0 pixels, shares of a side."""
    board = board_picture(chart.rng, ticks=True)
    answers = []
    for colour in list(COLOURS)[:LEVEL0_SQUARES]:
        square, where = board.squares[colour], BOARD_BOX
        words = _LEVEL0.format(x=where.x, y=where.y, w=where.width, h=where.height, colour=colour)
        truth = {"colour": colour, "box_px": square.as_list()}
        heard = chart.line.ask(Asked("level0", [user(board.part(), words)], (), truth, [board.sha256]))
        answers.append((four_numbers(heard.text), square))
    return level0_off(answers, BOARD_PX, BOARD_BOX)


def _said(decision: Decision) -> str:
    """Return in words what it counts in by itself."""
    if decision.off is None:
        return f"left to itself, it gave a readable box for {decision.read} of {len(COLOURS)} squares"
    if decision.counting is None:
        return f"left to itself, its boxes fit nothing well ({min(decision.off, 9.99):.0%} of a side off at best)"
    corner = "two corners" if decision.counting.form is BoxForm.XYXY else "a corner and an extent"
    return f"left to itself, it writes {corner} in {decision.counting.name} ({decision.off:.1%} of a side off)"
