"""Where the numbers of ROIs go: beside their box, inside the picture, and never on top of each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pathnav.geometry import Box


@dataclass(frozen=True, slots=True)
class Badge:
    """A placed label.

    Args:
        place: The badge's rectangle, in pixels of the picture.
        anchor: The point (x, y) of the labelled box that is nearest to the badge.
    """

    place: Box
    anchor: tuple[float, float]

    @property
    def is_detached(self) -> bool:
        """Whether the badge stands off its box, so that a line must lead to it."""
        x, y = self.place.clamp_point(self.anchor)
        return abs(x - self.anchor[0]) + abs(y - self.anchor[1]) > max(self.place.width, self.place.height) / 2


def place_badges(boxes: Sequence[Box], extents: Sequence[tuple[float, float]], frame: Box) -> list[Badge]:
    """Return one badge a box: at the first free place of its corners, its edges, and rings around it.

    Small boxes choose first, because a large one has more places to choose from; a badge lies inside the frame and
    meets no other badge while any such place is left.

    Args:
        boxes: The labelled boxes, in pixels of the picture.
        extents: Width and height of each badge in pixels.
        frame: The part of the picture that may be drawn on.

    Returns: Badges in the order of the boxes.
    """
    badges: dict[int, Badge] = {}
    for index in sorted(range(len(boxes)), key=lambda i: (boxes[i].area, i)):
        taken = [badge.place for badge in badges.values()]
        badges[index] = _place(boxes[index], extents[index], frame, taken)
    return [badges[index] for index in range(len(boxes))]


def _place(box: Box, extent: tuple[float, float], frame: Box, taken: list[Box]) -> Badge:
    """Return the free candidate, or the least covered one where none is free."""
    best: tuple[float, Box] | None = None
    for candidate in _candidates(box, *extent):
        place = candidate.shifted_into(frame)
        covered = sum(place.intersection(other).area for other in taken)
        if covered == 0:
            return Badge(place, box.clamp_point(place.centre))
        if best is None or covered < best[0]:
            best = (covered, place)
    place = best[1] if best else Box(box.x, box.y, *extent).shifted_into(frame)
    return Badge(place, box.clamp_point(place.centre))


def _candidates(box: Box, width: float, height: float) -> Iterator[Box]:
    """Yield places from the most to the least natural: corners outside, along the edges, then rings."""
    lefts = (box.x, box.right - width)
    yield from (Box(x, y, width, height) for y in (box.y - height, box.bottom) for x in lefts)
    if box.width > 3 * width and box.height > 3 * height:  # inside, where the box is not filled by it
        yield from (Box(x, y, width, height) for y in (box.y, box.bottom - height) for x in lefts)
    yield from (Box(x, box.y, width, height) for x in (box.x - width, box.right))
    for step in range(1, int(box.width // width)):
        yield Box(box.x + step * width, box.y - height, width, height)
        yield Box(box.x + step * width, box.bottom, width, height)
    for ring in range(1, 13):
        yield from _ring(box, width, height, ring)


def _ring(box: Box, width: float, height: float, ring: int) -> Iterator[Box]:
    """Yield the places of one ring around the box, one badge apart."""
    left, top = box.x - (ring + 0.5) * width, box.y - (ring + 0.5) * height
    right, bottom = box.right + (ring - 0.5) * width, box.bottom + (ring - 0.5) * height
    columns, rows = max(1, round((right - left) / width)), max(1, round((bottom - top) / height))
    for column in range(columns + 1):
        x = left + (right - left) * column / columns
        yield Box(x, top, width, height)
        yield Box(x, bottom, width, height)
    for row in range(1, rows):
        y = top + (bottom - top) * row / rows
        yield Box(left, y, width, height)
        yield Box(right, y, width, height)
