"""Slides that several threads share: opened once, pushed out when many others came, never while one of them reads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pathnav.errors import SlideError
from pathnav.geometry import Box
from pathnav.run.case import SlideSource
from pathnav.run.open_slides import MOST_OPEN, OpenSlides
from pathnav.slide import Slide
from support.trees import write_slide

SPOT = Box(0, 0, 8, 8)


@pytest.fixture
def sources(tmp_path: Path) -> list[SlideSource]:
    """Return more slides than stay open."""
    paths = [tmp_path / f"s{number}.tif" for number in range(MOST_OPEN + 2)]
    for path in paths:
        write_slide(path)
    return [SlideSource(str(path)) for path in paths]


def is_open(slide: Slide) -> bool:
    try:
        slide.read(SPOT, magnification=10)
    except SlideError:
        return False
    return True


def test_the_slide_that_was_not_used_for_longest_is_closed_but_not_while_it_is_kept(sources: list[SlideSource]) -> None:
    with OpenSlides() as slides, slides.kept(sources[1]):
        opened = [slides.get(source) for source in sources]
        assert [is_open(slide) for slide in opened[:3]] == [False, True, False]
        assert slides.get(sources[1]) is opened[1]


def test_a_slide_that_is_still_read_at_the_end_is_closed_when_it_is_let_go(sources: list[SlideSource]) -> None:
    slides = OpenSlides()
    with slides.kept(sources[0]):
        with slides:
            opened, other = slides.get(sources[0]), slides.get(sources[1])
        assert (is_open(opened), is_open(other)) == (True, False)
    assert not is_open(opened)


def test_threads_that_ask_for_one_slide_get_the_same(sources: list[SlideSource]) -> None:
    with OpenSlides() as slides, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: slides.get(sources[number % 2]), range(32)))
    assert len(set(map(id, found))) == 2
