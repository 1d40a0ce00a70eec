"""Drawing primitives of the trajectory picture: cased lines, badges, text and the scale bar.

Every line has a casing of the opposite lightness, so that it reads on white glass, pink stroma and dark nuclei. The
colours are those of Okabe and Ito (2008), which people with any colour vision can tell apart; line styles repeat what
the colours say.
"""

import functools
import textwrap
import unicodedata
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from pathnav.geometry import Box

Point = tuple[float, float]
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

BLACK, WHITE, GREY = "#000000", "#ffffff", "#595959"
BLUE, YELLOW, GREEN = "#0072b2", "#f0e442", "#009e73"

_OVERSAMPLING = 2
"""Pillow draws without anti-aliasing: twice the resolution, then reduced."""
_FONTS = ("DejaVuSans.ttf", "Arial.ttf", "Helvetica.ttc")


@dataclass(frozen=True, slots=True)
class Stroke:
    """How a box is outlined.

    Args:
        colour: Colour of the line.
        casing: Colour of the wider line under it.
        width_px: Width of the line in pixels of the picture, without its casing.
        dash_px: Length of dashes and gaps in pixels; None for a solid line.
    """

    colour: str
    casing: str
    width_px: float
    dash_px: float | None = None


@functools.cache
def font(height_px: int) -> Font:
    """Return a sans-serif font: one of the system with all of Latin and Greek, else Pillow's own, which is ASCII."""
    for name in _FONTS:
        try:
            return ImageFont.truetype(name, height_px)
        except OSError:
            continue
    return ImageFont.load_default(height_px)


def printable(text: str, face: Font) -> str:
    """Return the text in letters that the font has: ASCII for Pillow's own font."""
    if isinstance(face, ImageFont.FreeTypeFont) and face.getname()[0] != "Aileron":
        return text
    plain = unicodedata.normalize("NFKD", text.replace("×", "x").replace("µ", "u").replace("\u2013", "-"))
    return "".join(letter if letter.isascii() else "?" for letter in plain if not unicodedata.combining(letter))


def text_extent(text: str, face: Font) -> tuple[float, float]:
    """Return width and line height of one line of text in pixels."""
    left, _, right, _ = face.getbbox(printable(text, face))
    _, top, _, bottom = face.getbbox("Ag0|")
    return right - left, bottom - top


def wrapped(text: str, face: Font, width_px: float, lines: int) -> list[str]:
    """Return the text broken into at most `lines` lines of `width_px`, with an ellipsis where it is cut."""
    letter_px = max(1.0, text_extent("abcdefghij nopqrstu", face)[0] / 19)
    columns = max(8, int(width_px / letter_px))
    while columns > 8:
        broken = textwrap.wrap(text, columns, max_lines=lines, placeholder=" ...")
        if all(text_extent(line, face)[0] <= width_px for line in broken):
            return broken
        columns -= 1
    return textwrap.wrap(text, columns, max_lines=lines, placeholder=" ...")


class Overlay:
    """A transparent layer over a picture; all coordinates are pixels of the picture.

    Args:
        extent_px: Width and height of the picture.
    """

    def __init__(self, extent_px: tuple[int, int]) -> None:
        self._layer = Image.new("RGBA", (extent_px[0] * _OVERSAMPLING, extent_px[1] * _OVERSAMPLING), (0, 0, 0, 0))
        self._draw = ImageDraw.Draw(self._layer)

    def onto(self, picture: Image.Image) -> Image.Image:
        """Return the picture with this layer on top."""
        reduced = self._layer.reduce(_OVERSAMPLING)
        return Image.alpha_composite(picture.convert("RGBA"), reduced).convert("RGB")

    def box(self, box: Box, stroke: Stroke) -> None:
        """Outline a box; the line's centre runs along its edge, and dashes lie on a solid casing."""
        self._outline(box, stroke.casing, 2 * stroke.width_px)
        if stroke.dash_px is None:
            self._outline(box, stroke.colour, stroke.width_px)
            return
        for start, end in _edges(box):
            for piece in _dashes(start, end, stroke.dash_px):
                self._segment(*piece, stroke.colour, stroke.width_px)

    def line(self, start: Point, end: Point, stroke: Stroke) -> None:
        """Draw a straight, solid line."""
        for colour, width in ((stroke.casing, stroke.width_px * 2), (stroke.colour, stroke.width_px)):
            self._segment(start, end, colour, width)

    def fill(self, box: Box, colour: str, radius_px: float = 0) -> None:
        """Fill a box, with rounded corners."""
        corners = [n * _OVERSAMPLING for n in (box.x, box.y, box.right, box.bottom)]
        self._draw.rounded_rectangle(corners, radius_px * _OVERSAMPLING, fill=colour)

    def badge(self, box: Box, text: str, colour: str, height_px: int) -> None:
        """Draw white text on a filled box with a white rim."""
        rim = max(1.0, box.height / 14)
        self.fill(box, WHITE, box.height / 5)
        self.fill(Box(box.x + rim, box.y + rim, box.width - 2 * rim, box.height - 2 * rim), colour, box.height / 6)
        self.text(box.centre, text, height_px, WHITE, anchor="mm")

    def text(self, at: Point, text: str, height_px: int, colour: str = BLACK, *, anchor: str = "la") -> None:
        """Write one line; `anchor` is Pillow's."""
        face = font(height_px * _OVERSAMPLING)
        place = (at[0] * _OVERSAMPLING, at[1] * _OVERSAMPLING)
        self._draw.text(place, printable(text, face), font=face, fill=colour, anchor=anchor)

    def _outline(self, box: Box, colour: str, width_px: float) -> None:
        half = width_px / 2
        corners = [box.x - half, box.y - half, box.right + half, box.bottom + half]
        self._draw.rectangle([n * _OVERSAMPLING for n in corners], outline=colour, width=_line_width(width_px))

    def _segment(self, start: Point, end: Point, colour: str, width_px: float) -> None:
        points = [(x * _OVERSAMPLING, y * _OVERSAMPLING) for x, y in (start, end)]
        self._draw.line(points, fill=colour, width=_line_width(width_px))


def _line_width(width_px: float) -> int:
    return max(1, round(width_px * _OVERSAMPLING))


def _edges(box: Box) -> list[tuple[Point, Point]]:
    corners = [(box.x, box.y), (box.right, box.y), (box.right, box.bottom), (box.x, box.bottom)]
    return list(zip(corners, [*corners[1:], corners[0]], strict=True))


def _dashes(start: Point, end: Point, dash_px: float) -> list[tuple[Point, Point]]:
    """Return the drawn pieces of a line: a whole number of dashes, so that both ends are drawn."""
    length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5
    if length <= dash_px:
        return [(start, end)]
    pieces = max(1, round((length / dash_px + 1) / 2))
    unit = 1 / (2 * pieces - 1)

    def point(share: float) -> Point:
        return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share

    return [(point(2 * i * unit), point((2 * i + 1) * unit)) for i in range(pieces)]


def scale_length_um(longest_um: float) -> float:
    """Return the longest round length (1, 2 or 5 times a power of ten) that is not above `longest_um`."""
    power = 10.0
    while power > longest_um:
        power /= 10
    while power * 10 <= longest_um:
        power *= 10
    return max(step * power for step in (1, 2, 5) if step * power <= longest_um)


def scale_label(length_um: float) -> str:
    """Return a length as text: mm from 1,000 um."""
    return f"{length_um / 1000:g} mm" if length_um >= 1000 else f"{length_um:g} µm"
