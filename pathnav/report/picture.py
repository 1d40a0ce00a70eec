"""The trajectory picture: where an agent looked, what it answered, and where the target was.

Lines have a casing of the opposite lightness, so that they read on glass, stroma and nuclei; the colours are those of
Okabe and Ito (2008), which people with any colour vision can tell apart, and line styles repeat what they say.
"""

import io
import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pathnav.cohort.query import Query
from pathnav.errors import RecordError
from pathnav.geometry import Box, iou
from pathnav.records import write_bytes_atomic
from pathnav.report.load import EpisodeResult, load_result
from pathnav.run.folder import RunFolder
from pathnav.slide import Slide, open_slide

SIDE_PX = 1600
"""The default limit of the long side. All is laid out in pixels of this side, and drawn smaller where that is asked."""
BLACK, WHITE, GREY, BLUE, YELLOW, GREEN = "#000000", "#ffffff", "#595959", "#0072b2", "#f0e442", "#009e73"
STYLES = {
    "search region": (BLACK, WHITE, 2.5, 9),
    "ROIs, in order": (BLUE, WHITE, 3.5, None),
    "reported box": (YELLOW, BLACK, 3, 14),
    "final box": (YELLOW, BLACK, 5, None),
    "target": (GREEN, WHITE, 5, 16),
}
"""Colour, casing, width and length of dashes in pixels; the answer lies on top, so it comes last."""

Point = tuple[float, float]

_LEAST_SIDE_PX = 400  # below this nothing could be read
_TEXT_PX, _LINE_PX, _GAP_PX, _COLUMN_PX, _MOST_HEAD_PX = 25, 38, 24, 400, 186
_SAME_BOX_IOU = 0.98  # a reported box that differs less from the final one is only rounded


def draw_trajectory(
    slide: Slide,
    query: Query,
    rois: Sequence[Box],
    final_box: Box | None,
    *,
    target: Box | None = None,
    reported: Box | None = None,
    max_side_px: int = SIDE_PX,
    title: str | None = None,
    note: str | None = None,
) -> Image.Image:
    """Draw the search region with its ROIs in order, the answer, the target where known, a legend and a scale bar.

    A search region that is a small part of the slide gets an inset that shows where it lies.

    Args:
        slide: An open slide; only overviews are read.
        query: The question, whose finding and magnification are told.
        rois: Boxes looked at, in order, in level-0 pixels.
        final_box: The box that is scored, None without a valid report.
        target: The box that `final_box` is scored against, where known.
        reported: The box as the agent said it; drawn where it visibly differs from `final_box`.
        max_side_px: Limit of the picture's long side in pixels; at least 400.
        title: The heading; the slide's opaque handle by default.
        note: One more line of the column, such as the outcome.

    Returns: An RGB image whose long side is at most `max_side_px`.
    """
    differs = reported is not None and (final_box is None or iou(reported, final_box) < _SAME_BOX_IOU)
    shown = {
        "search region": [query.region],
        "ROIs, in order": list(rois),
        "reported box": [reported] if reported and differs else [],
        "final box": [final_box] if final_box else [],
        "target": [target] if target else [],
    }
    facts = [f"{query.magnification:g}×, {len(rois)} of {query.budget} ROIs"]
    facts += [f"IoU {iou(final_box, target):.2f}"] if target and final_box else []
    facts += ["phantom slide"] if slide.is_phantom else []
    facts += [note] if note else [] if final_box else ["no box reported"]
    shown = {name: found for name, found in shown.items() if found}
    page = _Page()
    page.draw(slide, shown, title or query.handle, query.finding, facts)
    return page.picture(max(_LEAST_SIDE_PX, max_side_px))


class _Page:
    """One axes over a whole figure, in pixels of a picture of `SIDE_PX`: x to the right, y down."""

    def __init__(self) -> None:
        from matplotlib import get_data_path
        from matplotlib.figure import Figure
        from matplotlib.ft2font import FT2Font

        self.figure = Figure(dpi=72, facecolor=WHITE)  # one point is one pixel
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.font = Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")  # the same on every machine
        self.face = FT2Font(str(self.font))
        self.width, self.height = 0.0, 0.0

    def draw(self, slide: Slide, shown: Mapping[str, list[Box]], title: str, finding: str, facts: list[str]) -> None:
        """Draw the heading, under it the search region, and beside that the column."""
        seen = [name for name in shown if name != "reported box"]  # which an agent may say of any place
        view = _view([box for name in seen for box in shown[name]], slide.bounds)
        most_width, most_height = SIDE_PX - _COLUMN_PX - 3 * _GAP_PX, SIDE_PX - _MOST_HEAD_PX - _GAP_PX
        scale = min(most_width / view.width, most_height / view.height)
        self.width = view.width * scale + _COLUMN_PX + 3 * _GAP_PX
        top = self._write((_GAP_PX, 10), title, self.width - 2 * _GAP_PX, px=32)
        top = self._write((_GAP_PX, top), finding, self.width - 2 * _GAP_PX, 3, color=GREY) + 12
        panel = Box(_GAP_PX, top, view.width * scale, view.height * scale)
        self._panel(slide, shown, view, panel)
        bottom = self._column(slide, shown, facts, (panel.right + _GAP_PX, top), scale)
        self.height = max(panel.bottom, bottom) + _GAP_PX

    def _panel(self, slide: Slide, shown: Mapping[str, list[Box]], view: Box, panel: Box) -> None:
        """Draw everything on its part of the slide, what lies around the search region faded by half."""
        placed = {name: [_placed(box, view, panel) for box in boxes] for name, boxes in shown.items()}
        self._pixels(slide, view, panel, within=panel, alpha=0.5)
        self._pixels(slide, view, panel, within=placed["search region"][0])
        for name, boxes in placed.items():
            for box in sorted(boxes, key=lambda box: -box.area):  # large ones under small ones
                self._outline(box, *STYLES[name], within=panel)
        rois = placed.get("ROIs, in order", [])
        rim = {"boxstyle": "round,pad=0.2", "facecolor": BLUE, "edgecolor": WHITE, "linewidth": 2.5}
        wide = _TEXT_PX * (0.7 + 0.64 * len(str(len(rois))))
        for number, place in enumerate(badge_places(rois, wide, 1.35 * _TEXT_PX, panel)):
            (x, y), nearest = place.centre, rois[number].clamp_point(place.centre)
            for colour, width in ((WHITE, 4), (BLUE, 2)):  # seen where the number stands off its box
                self.axes.plot((x, nearest[0]), (y, nearest[1]), color=colour, linewidth=width, zorder=2)
            self._line(place.centre, str(number + 1), fontsize=_TEXT_PX, color=WHITE, ha="center", bbox=rim)

    def _column(self, slide: Slide, shown: Mapping[str, list[Box]], facts: list[str], at: Point, scale: float) -> float:
        """Draw inset, legend, facts and scale bar, one under the other; return where they end."""
        left, top = at
        whole, region = slide.bounds, shown["search region"][0]
        if region.area <= 0.5 * whole.area:  # else the panel shows most of the slide already
            shrink = min(_COLUMN_PX / whole.width, 0.3 * SIDE_PX / whole.height)
            inset = Box(left, top, whole.width * shrink, whole.height * shrink)
            self._pixels(slide, whole, inset, within=inset)
            self._outline(inset, GREY, GREY, 0.5)
            self._outline(_placed(region, whole, inset), BLACK, WHITE, 3)
            top = inset.bottom + _GAP_PX
        for name in shown:
            self._outline(Box(left + 6, top + 7, 44, 24), *STYLES[name])
            top = self._write((left + 68, top), name, _COLUMN_PX)
        top += _GAP_PX
        for fact in facts:
            top = self._write((left, top), fact, _COLUMN_PX, 3)
        if not slide.has_mpp:
            return top
        um_per_px = slide.mpp_um[0] / scale
        length_um = round_length(0.8 * _COLUMN_PX * um_per_px)
        right = left + length_um / um_per_px
        self.axes.plot((left, right), (top + _GAP_PX,) * 2, color=BLACK, linewidth=7, solid_capstyle="butt")
        label = f"{length_um / 1000:g} mm" if length_um >= 1000 else f"{length_um:g} µm"
        return self._write(((left + right) / 2, top + 1.4 * _GAP_PX), label, _COLUMN_PX, ha="center")

    def _outline(
        self, box: Box, colour: str, casing: str, width: float, dash: float | None = None, *, within: Box | None = None
    ) -> None:
        """Outline a box, or what of its outline lies within another; dashes lie on a solid casing."""
        style: Any = (dash / width / 2, (dash / width, dash / width)) if dash else "solid"  # a dash lies at the corner
        for edge, wide, line in ((casing, 2 * width, "solid"), (colour, width, style)):
            drawn = self._rectangle(box, fill=False, edgecolor=edge, linewidth=wide, linestyle=line)
            self.axes.add_patch(drawn)
            if within:
                drawn.set_clip_path(self._rectangle(within))

    def _rectangle(self, box: Box, **style: Any) -> Any:
        from matplotlib.patches import Rectangle

        return Rectangle((box.x, box.y), box.width, box.height, transform=self.axes.transData, **style)

    def _pixels(self, slide: Slide, view: Box, place: Box, within: Box, alpha: float = 1) -> None:
        """Draw a view of the slide at a place, and of it what lies within a box; nothing beyond the scanned area."""
        seen = view.intersection(slide.bounds)
        if seen.is_empty:
            return
        at = _placed(seen, view, place)
        pixels = slide.overview(seen, max(1, round(max(at.width, at.height))))
        extent = (at.x, at.right, at.bottom, at.y)
        image = self.axes.imshow(pixels, extent=extent, alpha=alpha, aspect="auto", interpolation="antialiased")
        image.set_clip_path(self._rectangle(within))

    def _write(self, at: Point, text: str, width: float, lines: int = 1, px: float = _TEXT_PX, **style: Any) -> float:
        """Write a text from a top corner in at most so many lines no wider than that; return where they end."""
        known = self.face.get_charmap()
        readable = "".join(letter if ord(letter) in known else "\N{REPLACEMENT CHARACTER}" for letter in text)
        self.face.set_size(px, 72)
        broken: list[str] = []
        for columns in range(int(4 * width / px), 7, -1):
            broken = textwrap.wrap(" ".join(readable.split()), columns, max_lines=lines, placeholder=" ...")
            if all(self._width(line) <= width for line in broken):
                break
        step = px * _LINE_PX / _TEXT_PX
        for number, line in enumerate(broken):
            self._line((at[0], at[1] + (number + 0.5) * step), line, fontsize=px, **style)
        return at[1] + len(broken) * step

    def _width(self, line: str) -> float:
        self.face.set_text(line)
        return float(self.face.get_width_height()[0]) / 64

    def _line(self, at: Point, line: str, **style: Any) -> None:
        self.axes.text(*at, line, font=self.font, va="center_baseline", parse_math=False, usetex=False, **style)

    def picture(self, side_px: int) -> Image.Image:
        """Return the page, drawn so that the side of `SIDE_PX` has so many pixels."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self.figure.set_dpi(72 * side_px / SIDE_PX)
        self.figure.set_size_inches(self.width / 72, self.height / 72)
        self.axes.set(xlim=(0, self.width), ylim=(self.height, 0))
        canvas = FigureCanvasAgg(self.figure)
        canvas.draw()
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _view(boxes: Sequence[Box], scanned: Box) -> Box:
    """Return what is shown: every box, a twentieth of the slide around them, and a rim that keeps lines uncut."""
    left, top = min(box.x for box in boxes), min(box.y for box in boxes)
    drawn = Box.from_corners(left, top, max(box.right for box in boxes), max(box.bottom for box in boxes))
    around = _grown(drawn, 0.05).intersection(scanned)
    left, top = min(drawn.x, around.x), min(drawn.y, around.y)
    return _grown(Box.from_corners(left, top, max(drawn.right, around.right), max(drawn.bottom, around.bottom)), 0.02)


def _grown(box: Box, share: float) -> Box:
    margin = share * max(box.width, box.height)
    return Box(box.x - margin, box.y - margin, box.width + 2 * margin, box.height + 2 * margin)


def _placed(box: Box, view: Box, place: Box) -> Box:
    """Return where a box lies when a view of the slide fills a place."""
    scale = place.width / view.width
    x, y = place.x + (box.x - view.x) * scale, place.y + (box.y - view.y) * scale
    return Box(x, y, box.width * scale, box.height * scale)


def badge_places(boxes: Sequence[Box], width: float, height: float, frame: Box) -> list[Box]:
    """Return where each box's number goes: a free corner, else near the first one, inside the frame and off the others.

    Small boxes choose first, because a large one has more places to choose from.
    """
    steps = sorted(itertools.product(range(-12, 13), repeat=2), key=lambda step: (step[0] ** 2 + step[1] ** 2, step))
    taken: dict[int, Box] = {}
    for number in sorted(range(len(boxes)), key=lambda number: (boxes[number].area, number)):
        box = boxes[number]
        corners = [(x, y) for y in (box.y - height, box.bottom) for x in (box.x, box.right - width)]
        around = [(box.x - i * width, box.y - (j + 1) * height) for i, j in steps]
        places = (Box(x, y, width, height) for x, y in (*corners, *around))
        free = (place for place in places if frame.holds(place) and not any(map(place.meets, taken.values())))
        taken[number] = next(free, Box(*corners[0], width, height).shifted_into(frame))
    return [taken[number] for number in range(len(boxes))]


def round_length(longest: float) -> float:
    """Return the longest of 1, 2 and 5 times a power of ten that is not above a length."""
    power = 10.0 ** math.floor(math.log10(longest))
    return max(step * power for step in (1, 2, 5) if step * power <= longest)


def draw_result(
    slide: Slide, result: EpisodeResult, *, max_side_px: int = SIDE_PX, title: str | None = None
) -> Image.Image:
    """Draw one result on its open slide; a declared distribution of boxes has no final box to draw.

    The target is drawn where it was scored, so that the printed IoU is that of the drawn boxes.
    """
    asked, known = result.query, result.scored_target or result.target
    final, reported = (None, None) if result.draws else (result.box, result.reported)
    who = f"{result.agent} ({result.model})" if result.model else result.agent
    note = None if result.has_valid_box else f"outcome: {result.outcome}"
    if result.draws:
        expected = "" if result.iou is None else f", expected IoU {result.iou:.2f}"
        note = f"{result.draws:,} boxes declared{expected}"
    region = Box.from_list(asked.region)
    return draw_trajectory(
        slide,
        Query(asked.handle, asked.magnification, asked.finding, region, *asked.target_size, asked.budget),
        [Box.from_list(roi) for roi in result.rois],
        Box.from_list(final) if final else None,
        target=Box.from_list(known) if known else None,
        reported=Box.from_list(reported) if reported else None,
        max_side_px=max_side_px,
        title=title or f"{Path(result.slide.path).name}, {who}",
        note=note,
    )


def draw_episode(
    run_folder: str | Path,
    key: str,
    *,
    slide_path: str | Path | None = None,
    max_side_px: int = SIDE_PX,
    title: str | None = None,
) -> Image.Image:
    """Draw a recorded episode, named by its key; its slide is opened where it was, or at `slide_path`.

    Raises:
        RecordError: If there is no such finished episode, or the slide is not the one that it was about.
        SlideError: If the slide cannot be opened.
    """
    result = load_result(RunFolder(Path(run_folder)), key)
    if result is None:
        raise RecordError(f"{run_folder} has no finished episode {key!r}")
    if not isinstance(result, EpisodeResult):
        raise RecordError(
            f"{key!r} of {run_folder} is an exploration of a whole slide, which has no trajectory to draw"
        )
    path, recorded = str(slide_path or result.slide.path), result.slide
    with open_slide(path) as slide:
        if slide.fingerprint != recorded.fingerprint:
            raise RecordError(f"{path} is not the slide that the episode was about: its fingerprint differs")
        mpp = None if slide.has_mpp and slide.mpp_um == recorded.mpp_um else recorded.mpp_um
    with open_slide(path, mpp=mpp[0] if mpp else None) as slide:  # with the scale that it was used with
        return draw_result(slide, result, max_side_px=max_side_px, title=title)


def write_picture(path: Path, picture: Image.Image) -> None:
    """Write a picture as PNG; it shows the slide's pixels, so it is readable by its owner only.

    Raises:
        RecordError: If it cannot be written.
    """
    encoded = io.BytesIO()
    picture.save(encoded, format="PNG")
    write_bytes_atomic(path, encoded.getvalue())
