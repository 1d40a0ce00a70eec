"""The layout of the trajectory picture: heading, search region, and a column with inset, legend and scale bar."""

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from pathnav.geometry import Box, iou
from pathnav.report.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    WHITE,
    YELLOW,
    Overlay,
    Stroke,
    font,
    scale_label,
    scale_length_um,
    text_extent,
    wrapped,
)
from pathnav.report.labels import place_badges
from pathnav.slide import Slide

REFERENCE_SIDE_PX = 1600
"""The side for which the line widths and letter heights below were chosen."""
_CONTEXT = 0.05
"""Of the slide, shown around the search region, as a share of the region's long side."""
_RIM = 0.02
"""Free around that, so that lines and numbers at the slide's edge are not cut."""
_COLUMN = 0.25
"""Width of the column with inset and legend, as a share of the picture's side."""
_SAME_BOX_IOU = 0.98
_FINDING_LINES = 3
"""A finding that needs more lines is cut."""
_DIMMED = 0.5
"""How far the surroundings of the search region fade to white."""
MIN_SIDE_PX = 400
"""Below this side nothing could be read."""

_Entry = tuple[str, Stroke]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What is drawn; all boxes are level-0 pixels.

    Args:
        region: Search region.
        rois: Boxes looked at, in order.
        final: The box that is scored, None without a valid report.
        reported: The box as the agent said it; drawn where it visibly differs from `final`.
        target: The annotated box, where known.
    """

    region: Box
    rois: tuple[Box, ...]
    final: Box | None = None
    reported: Box | None = None
    target: Box | None = None

    @property
    def extent(self) -> Box:
        """The box around all that must be seen."""
        boxes = [self.region, *self.rois, *(box for box in (self.final, self.target) if box)]
        left, top = min(box.x for box in boxes), min(box.y for box in boxes)
        return Box.from_corners(left, top, max(box.right for box in boxes), max(box.bottom for box in boxes))


class Figure:
    """Heading above, the search region on the left, a column with inset, legend and scale on the right."""

    def __init__(self, slide: Slide, trajectory: Trajectory, side_px: int) -> None:
        self.slide, self.trajectory, self.side_px = slide, trajectory, side_px
        self.unit = side_px / REFERENCE_SIDE_PX
        self.text_px, self.title_px = self._px(25), self._px(32)
        self.gap_px, self.column_px = self._px(24), round(side_px * _COLUMN)

    def _px(self, reference_px: float) -> int:
        return max(1, round(reference_px * self.unit))

    def compose(self, title: str, finding: str, facts: Sequence[str]) -> Image.Image:
        """Return the whole picture."""
        view = self._view()
        most_width = self.side_px - 3 * self.gap_px - self.column_px
        most_height = self.side_px - self._head_px(_FINDING_LINES) - self.gap_px
        scale = min(most_width / view.width, most_height / view.height)
        panel = self._panel(view, scale)
        column = self._column(scale, facts)
        width = panel.width + column.width + 3 * self.gap_px
        lines = wrapped(finding, font(self.text_px), width - 2 * self.gap_px, _FINDING_LINES)
        head_px = self._head_px(len(lines))
        picture = Image.new("RGB", (width, head_px + max(panel.height, column.height) + self.gap_px), WHITE)
        picture.paste(panel, (self.gap_px, head_px))
        picture.paste(column, (panel.width + 2 * self.gap_px, head_px))
        titles = wrapped(title, font(self.title_px), width - 2 * self.gap_px, 1)
        picture.paste(self._heading((width, head_px), titles, lines), (0, 0))
        return picture

    def _head_px(self, lines: int) -> int:
        return self._px(44) + self.title_px + round(lines * self.text_px * 1.4)

    def _heading(self, extent_px: tuple[int, int], title: Sequence[str], finding: Sequence[str]) -> Image.Image:
        overlay = Overlay(extent_px)
        top = float(self._px(18))
        for line in title:
            overlay.text((self.gap_px, top), line, self.title_px)
        top += self.title_px * 1.35
        for line in finding:
            overlay.text((self.gap_px, top), line, self.text_px, GREY)
            top += self.text_px * 1.4
        return overlay.onto(Image.new("RGB", extent_px, WHITE))

    def _view(self) -> Box:
        """Return what the panel shows: everything drawn, the slide around it, and a rim."""
        drawn = self.trajectory.extent
        around = _grown(drawn, _CONTEXT * max(drawn.width, drawn.height)).intersection(self.slide.bounds)
        left, top = min(drawn.x, around.x), min(drawn.y, around.y)
        shown = Box.from_corners(left, top, max(drawn.right, around.right), max(drawn.bottom, around.bottom))
        return _grown(shown, _RIM * max(shown.width, shown.height))

    def _panel(self, view: Box, scale: float) -> Image.Image:
        """Return the search region with everything drawn on it; `scale` is pixels per level-0 pixel."""
        extent_px = max(1, round(view.width * scale)), max(1, round(view.height * scale))
        panel = _pixels(self.slide, view, extent_px)
        region = _scaled(self.trajectory.region, view, scale)
        faded = Image.blend(panel, Image.new("RGB", extent_px, WHITE), _DIMMED)
        corners = round(region.x), round(region.y), round(region.right), round(region.bottom)
        faded.paste(panel.crop(corners), corners[:2])
        overlay = Overlay(extent_px)
        for box, stroke in self._outlines():
            overlay.box(_scaled(box, view, scale), stroke)
        self._badges(overlay, [_scaled(roi, view, scale) for roi in self.trajectory.rois], extent_px)
        return overlay.onto(faded)

    def _outlines(self) -> list[tuple[Box, Stroke]]:
        """Return what is outlined, lowest first: large ROIs under small ones, the answer on top."""
        done, strokes = self.trajectory, self._strokes()
        rois = sorted(done.rois, key=lambda roi: -roi.area)
        found = [(done.region, strokes["region"]), *((roi, strokes["roi"]) for roi in rois)]
        if self._reported_differs and done.reported:
            found.append((done.reported, strokes["reported"]))
        found += [(done.final, strokes["final"])] if done.final else []
        return [*found, (done.target, strokes["target"])] if done.target else found

    @property
    def _reported_differs(self) -> bool:
        """Whether the reported box can be told from the final one: rounding alone is not drawn."""
        done = self.trajectory
        return done.reported is not None and (done.final is None or iou(done.reported, done.final) < _SAME_BOX_IOU)

    def _strokes(self) -> dict[str, Stroke]:
        return {
            "region": Stroke(BLACK, WHITE, 2.5 * self.unit, 9 * self.unit),
            "roi": Stroke(BLUE, WHITE, 3.5 * self.unit),
            "reported": Stroke(YELLOW, BLACK, 3 * self.unit, 14 * self.unit),
            "final": Stroke(YELLOW, BLACK, 5 * self.unit),
            "target": Stroke(GREEN, WHITE, 5 * self.unit, 16 * self.unit),
        }

    def _badges(self, overlay: Overlay, boxes: list[Box], extent_px: tuple[int, int]) -> None:
        letters = font(self.text_px)
        height = self.text_px * 1.25
        extents = [
            (max(height, text_extent(str(n + 1), letters)[0] + self.text_px * 0.7), height) for n in range(len(boxes))
        ]
        placed = place_badges(boxes, extents, Box(0, 0, *extent_px))
        leader = Stroke(BLUE, WHITE, 2 * self.unit)
        for badge in placed:
            if badge.is_detached:
                overlay.line(badge.place.centre, badge.anchor, leader)
        for number, badge in enumerate(placed, start=1):
            overlay.badge(badge.place, str(number), BLUE, self.text_px)

    def _column(self, scale: float, facts: Sequence[str]) -> Image.Image:
        """Return inset, legend, facts and scale bar, one under the other."""
        inset = self._inset()
        line_px = round(self.text_px * 1.6)
        entries, bar = self._legend(), self._scale_bar(scale)
        words = [line for fact in facts for line in wrapped(fact, font(self.text_px), self.column_px, 3)]
        lines = len(entries) + len(words) + (2 if bar else 0)
        top = inset.height + self.gap_px if inset else 0
        column = Image.new("RGB", (self.column_px, top + lines * line_px + 2 * self.gap_px), WHITE)
        if inset:
            column.paste(inset, (0, 0))
        overlay = Overlay(column.size)
        swatch_px = self._px(44)
        for name, stroke in entries:
            swatch = Box(self._px(6), top + line_px * 0.2, swatch_px, line_px * 0.6)
            overlay.box(swatch, stroke)
            overlay.text((swatch.right + self._px(18), top + line_px / 2), name, self.text_px, anchor="lm")
            top += line_px
        top += self.gap_px
        for word in words:
            overlay.text((0, top + line_px / 2), word, self.text_px, anchor="lm")
            top += line_px
        if bar:
            self._draw_bar(overlay, bar, top + self.gap_px, line_px)
        return overlay.onto(column)

    def _legend(self) -> list[_Entry]:
        done, strokes = self.trajectory, self._strokes()
        shown = {
            "search region": (True, "region"),
            "ROIs, in order": (bool(done.rois), "roi"),
            "reported box": (self._reported_differs, "reported"),
            "final box": (done.final is not None, "final"),
            "target": (done.target is not None, "target"),
        }
        return [(name, strokes[stroke]) for name, (is_there, stroke) in shown.items() if is_there]

    def _inset(self) -> Image.Image | None:
        """Return the whole slide with the search region on it, None where the panel shows most of it already."""
        whole, region = self.slide.bounds, self.trajectory.region
        if region.area > 0.5 * whole.area:
            return None
        scale = min(self.column_px / whole.width, 0.3 * self.side_px / whole.height)
        extent_px = max(1, round(whole.width * scale)), max(1, round(whole.height * scale))
        picture = _pixels(self.slide, whole, extent_px)
        overlay = Overlay(extent_px)
        frame = Stroke(GREY, GREY, self.unit / 2)
        overlay.box(Box(1, 1, extent_px[0] - 2, extent_px[1] - 2), frame)
        overlay.box(_scaled(region, whole, scale), Stroke(BLACK, WHITE, 3 * self.unit))
        return overlay.onto(picture)

    def _scale_bar(self, scale: float) -> tuple[float, str] | None:
        """Return length in pixels and label of the scale bar, None for a slide without a physical scale."""
        if not self.slide.has_mpp:
            return None
        um_per_px = self.slide.mpp_um[0] / scale
        length_um = scale_length_um(0.8 * self.column_px * um_per_px)
        return length_um / um_per_px, scale_label(length_um)

    def _draw_bar(self, overlay: Overlay, bar: tuple[float, str], top: float, line_px: float) -> None:
        length_px, label = bar
        overlay.fill(Box(0, top + line_px * 0.3, length_px, self._px(7)), BLACK)
        overlay.text((length_px / 2, top + line_px), label, self.text_px, anchor="mm")


def _grown(box: Box, margin: float) -> Box:
    return Box(box.x - margin, box.y - margin, box.width + 2 * margin, box.height + 2 * margin)


def _scaled(box: Box, view: Box, scale: float) -> Box:
    """Return a level-0 box in pixels of a picture of `view`."""
    return Box((box.x - view.x) * scale, (box.y - view.y) * scale, box.width * scale, box.height * scale)


def _pixels(slide: Slide, view: Box, extent_px: tuple[int, int]) -> Image.Image:
    """Return a view of the slide in the given extent, white beyond the scanned area."""
    picture = Image.new("RGB", extent_px, WHITE)
    seen = view.intersection(slide.bounds)
    if seen.is_empty:
        return picture
    place = _scaled(seen, view, extent_px[0] / view.width)
    inside_px = max(1, round(place.width)), max(1, round(place.height))
    overview = Image.fromarray(slide.overview(seen, max(inside_px)))
    picture.paste(overview.resize(inside_px, Image.Resampling.LANCZOS), (round(place.x), round(place.y)))
    return picture
