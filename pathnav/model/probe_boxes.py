"""In what coordinates a model answers, told from boxes of squares whose places are known; pure arithmetic.

Every way of counting that a profile can declare is tried on all answers, and some that none can; the one that fits all
squares, and fits clearly better than the next, is it. Otherwise it is undecided.
"""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from pathnav.geometry import Box
from pathnav.model.profile import BoxForm, Frame

FITS = 0.04
"""Shares of a side that corners may be off, in the median over the squares."""
CLEARER = 0.03
"""By how much the next way of counting must fit worse."""
FEWEST = 3
"""Squares whose boxes must be readable."""
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE]-?\d+)?")
_GROUP = re.compile(r"[\[(]([^\[\]()]*)[\])]")


@dataclass(frozen=True, slots=True)
class Counting:
    """One way of writing a box.

    Args:
        name: In plain words.
        frame: What a profile calls it; None where no profile can declare it.
        form: Corner and extent, or two corners.
        y_first: Whether y stands before x.
        whole: The number at the right and lower edge; None for pixels.
    """

    name: str
    frame: Frame | None
    form: BoxForm
    y_first: bool
    whole: float | None

    def corners(self, numbers: Sequence[float], width_px: int, height_px: int) -> tuple[float, float, float, float]:
        """Return left, top, right and bottom as shares of the sides."""
        one, two, three, four = numbers
        x, y, a, b = (two, one, four, three) if self.y_first else (one, two, three, four)
        right, bottom = (a, b) if self.form is BoxForm.XYXY else (x + a, y + b)
        width, height = (width_px, height_px) if self.whole is None else (self.whole, self.whole)
        return x / width, y / height, right / width, bottom / height


def _countings() -> tuple[Counting, ...]:
    kinds: tuple[tuple[str, Frame | None, bool, float | None], ...] = (
        ("pixels of the image", Frame.VIEW_PX, False, None),
        ("shares of the sides, 0 to 1", Frame.UNIT, False, 1.0),
        ("thousandths of the sides", Frame.THOUSAND, False, 1000.0),
        ("thousandths of the sides, y before x", Frame.THOUSAND_YX, True, 1000.0),
        ("pixels of the image, y before x", None, True, None),
        ("shares of the sides, y before x", None, True, 1.0),
        ("hundredths of the sides", None, False, 100.0),
    )
    return tuple(
        Counting(name, frame, form, y_first, whole)
        for (name, frame, y_first, whole), form in itertools.product(kinds, BoxForm)
    )


COUNTINGS = _countings()


@dataclass(frozen=True, slots=True)
class Decision:
    """Which way of counting fits.

    Args:
        counting: The one; None where it cannot be told.
        off: By how much the best one is off, shares of a side; None where too few boxes were readable.
        next_off: The same of the next best that means other numbers.
        read: Squares whose boxes could be read.
    """

    counting: Counting | None
    off: float | None
    next_off: float | None
    read: int


def four_numbers(text: str) -> list[float] | None:
    """Return the four numbers of a box in an answer; None where there are not just four.

    The last bracket with four numbers counts; without one the text must hold four in all. Digits in names such as `x1`
    or `bbox_2d` are none.
    """
    groups = [found for group in _GROUP.findall(text) if len(found := _NUMBER.findall(group)) == 4]
    found = groups[-1] if groups else _NUMBER.findall(text)
    if len(found) != 4:
        return None
    numbers = [float(number) for number in found]
    return numbers if all(map(math.isfinite, numbers)) else None


def off_by(numbers: Sequence[float], truth: Box, counting: Counting, extent_px: tuple[int, int]) -> float:
    """Return how far the worst edge of an answer is off, as a share of its side of the image."""
    width, height = extent_px
    told = counting.corners(numbers, width, height)
    true = (truth.x / width, truth.y / height, truth.right / width, truth.bottom / height)
    return max(abs(a - b) for a, b in zip(told, true, strict=True))


def decide(
    answers: Mapping[str, Sequence[float] | None], truth: Mapping[str, Box], extent_px: tuple[int, int]
) -> Decision:
    """Return the way of counting that fits the answers.

    Args:
        answers: Four numbers by colour, None where none could be read.
        truth: The squares by colour, pixels of the picture.
        extent_px: Width and height of the picture.
    """
    readable = {name: numbers for name, numbers in answers.items() if numbers is not None}
    if len(readable) < FEWEST:
        return Decision(None, None, None, len(readable))
    offs = [
        (median(off_by(numbers, truth[name], counting, extent_px) for name, numbers in readable.items()), counting)
        for counting in COUNTINGS
    ]
    offs.sort(key=lambda pair: pair[0])
    (off, best), (next_off, _) = offs[:2]
    fits = off <= FITS and next_off - off >= CLEARER
    return Decision(best if fits else None, off, next_off, len(readable))


def level0_off(answers: Sequence[tuple[Sequence[float] | None, Box]], extent_px: tuple[int, int], shown: Box) -> float:
    """Return how far answers of [x, y, w, h] in level-0 pixels are off in the median, shares of a side.

    Args:
        answers: Four numbers, None where none could be read, and the square in pixels of the picture.
        extent_px: Width and height of the picture.
        shown: What the picture shows, level-0 pixels.
    """
    offs = []
    across, down = shown.width / extent_px[0], shown.height / extent_px[1]
    for numbers, square in answers:
        if numbers is None:
            offs.append(math.inf)
            continue
        x, y, width, height = numbers
        picture = [(x - shown.x) / across, (y - shown.y) / down, width / across, height / down]
        offs.append(off_by(picture, square, COUNTINGS[0], extent_px))
    return median(offs)
