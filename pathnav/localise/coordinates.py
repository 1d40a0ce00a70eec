"""The one place that turns level-0 boxes into the numbers a model thinks in, and back.

Models are trained to point in frames of their own: pixels of the image they were shown, shares or thousandths of its
sides, y before x, corners or extents. Which it is stands in the server profile and is never guessed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pathnav.errors import RoiError
from pathnav.geometry import Box
from pathnav.localise.views import View
from pathnav.model.profile import BoxForm, Frame, Profile

_ORDER = {
    (BoxForm.XYWH, False): "[x, y, w, h]",
    (BoxForm.XYXY, False): "[x1, y1, x2, y2]",
    (BoxForm.XYWH, True): "[y, x, h, w]",
    (BoxForm.XYXY, True): "[y1, x1, y2, x2]",
}
_THOUSAND = 1000.0


@dataclass(frozen=True, slots=True)
class Shown:
    """What image `number` of an episode shows; 0 is the overview.

    Its `width_px` x `height_px` at the top left show `box`; the whole image is larger only where a sliver was padded.
    """

    number: int
    box: Box
    width_px: int
    height_px: int
    full_width_px: int
    full_height_px: int

    @classmethod
    def of(cls, number: int, view: View) -> "Shown":
        """Return what is kept of a view."""
        return cls(number, view.box, *view.image_size_px, *view.padded_size_px)


@dataclass(frozen=True, slots=True)
class Coordinates:
    """How a model writes boxes: what the numbers count, and whether they are corner and extent or two corners."""

    frame: Frame = Frame.LEVEL0
    form: BoxForm = BoxForm.XYWH

    @classmethod
    def of(cls, profile: Profile) -> "Coordinates":
        """Return what a profile declares."""
        return cls(profile.frame, profile.box)

    @property
    def are_plain(self) -> bool:
        """Whether they are those of the tools themselves: [x, y, w, h] in level-0 pixels."""
        return not self.are_in_images and self.form is BoxForm.XYWH

    @property
    def are_in_images(self) -> bool:
        """Whether they are places in an image, which must be named."""
        return self.frame is not Frame.LEVEL0

    @property
    def order(self) -> str:
        """The names of a box's four numbers, in their order."""
        return _ORDER[self.form, self.frame is Frame.THOUSAND_YX]

    def units(self, number: int = 0) -> str:
        """Return what the numbers of an image count, in a few words."""
        return f"coordinates of image {number}" if self.are_in_images else "level-0 px"

    def extent(self, shown: Shown) -> tuple[float, float]:
        """Return the x at the right edge and the y at the lower edge of what an image shows."""
        if self.frame is Frame.VIEW_PX:
            return float(shown.width_px), float(shown.height_px)
        whole = 1.0 if self.frame is Frame.UNIT else _THOUSAND
        return whole * shown.width_px / shown.full_width_px, whole * shown.height_px / shown.full_height_px

    def to_model(self, box: Box, shown: Shown) -> list[float]:
        """Return a level-0 box as the model writes it in an image, rounded to half an image pixel or finer."""
        if not self.are_in_images:
            return self._written((box.x, box.y), (box.right, box.bottom))
        width, height = self.extent(shown)

        def corner(x: float, y: float) -> tuple[float, float]:
            across, down = (x - shown.box.x) / shown.box.width, (y - shown.box.y) / shown.box.height
            return _rounded(across * width, width, shown.width_px), _rounded(down * height, height, shown.height_px)

        return self._written(corner(box.x, box.y), corner(box.right, box.bottom))

    def to_level0(self, numbers: Sequence[float], shown: Shown) -> Box:
        """Return the level-0 box of four numbers in `order` that a model wrote of an image.

        Raises:
            RoiError: If they are not four finite numbers, have no area, or miss the image.
        """
        left, top, right, bottom = self._corners(numbers)
        if not self.are_in_images:
            return Box(left, top, right - left, bottom - top)
        width, height = self.extent(shown)
        if right <= 0 or bottom <= 0 or left >= width or top >= height:
            raise RoiError(f"bbox misses image {shown.number}; {self.legal_range(shown)}")
        across, down = shown.box.width / width, shown.box.height / height
        box = Box(shown.box.x + left * across, shown.box.y + top * down, (right - left) * across, (bottom - top) * down)
        if min(box.width, box.height) < 1:
            raise RoiError(f"bbox is smaller than one pixel of the slide; {self.legal_range(shown)}")
        return box

    def legal_range(self, shown: Shown) -> str:
        """Return the sentence that tells which boxes may be asked for in an image."""
        width, height = self.extent(shown)
        return (
            f"expected {self.order} in {self.units(shown.number)}, in which x runs from 0 to {width:g} and y from 0 to "
            f"{height:g}"
        )

    def size(self, extent_px: Sequence[float], shown: Shown) -> list[float]:
        """Return a width and height in level-0 pixels as the model counts them in an image."""
        if not self.are_in_images:
            return list(extent_px)
        width, height = self.extent(shown)
        across, down = width / shown.box.width, height / shown.box.height
        return [float(f"{extent_px[0] * across:.4g}"), float(f"{extent_px[1] * down:.4g}")]

    def caption(self, what: str, shown: Shown, view: View, overview: Shown) -> str:
        """Return the line that stands before an image, in the model's own coordinates."""
        size = "{} x {} px".format(*view.image_size_px)
        if view.padded_size_px != view.image_size_px:
            size += " (padded with white to {} x {} px)".format(*view.padded_size_px)
        if not self.are_in_images:
            return f"{what}: {size} at {view.magnification:.3g}x, level-0 box {self.to_model(shown.box, shown)}"
        where = "" if shown.number == 0 else f", box {self.to_model(shown.box, overview)} of image 0"
        return f"{what}: image {shown.number}, {size} at {view.magnification:.3g}x{where}"

    def _written(self, first: tuple[float, float], second: tuple[float, float]) -> list[float]:
        """Return two corners in the model's order."""
        (x, y), (right, bottom) = first, second
        a, b = (right, bottom) if self.form is BoxForm.XYXY else (right - x, bottom - y)
        numbers = [y, x, b, a] if self.frame is Frame.THOUSAND_YX else [x, y, a, b]
        return [int(number) if float(number).is_integer() else round(number, 6) for number in numbers]

    def _corners(self, numbers: Sequence[float]) -> tuple[float, float, float, float]:
        """Return left, top, right and bottom of four numbers in the model's order."""
        if len(numbers) != 4 or not all(math.isfinite(number) for number in numbers):
            raise RoiError(f"expected four finite numbers {self.order}, got {list(numbers)}")
        one, two, three, four = numbers
        x, y, a, b = (two, one, four, three) if self.frame is Frame.THOUSAND_YX else (one, two, three, four)
        right, bottom = (a, b) if self.form is BoxForm.XYXY else (x + a, y + b)
        if right <= x or bottom <= y:
            rule = "x2 > x1 and y2 > y1" if self.form is BoxForm.XYXY else "w > 0 and h > 0"
            raise RoiError(f"expected {self.order} with {rule}, got {list(numbers)}")
        return x, y, right, bottom


def _rounded(value: float, extent: float, extent_px: int) -> float:
    """Return a coordinate rounded to the decimals that half an image pixel needs."""
    decimals = max(0, math.ceil(math.log10(extent_px / extent)))
    return round(value, decimals)
