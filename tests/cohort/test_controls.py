"""Controls: shifted search regions and swapped findings."""

import logging
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.cohort.controls import jittered, swapped
from pathnav.errors import ConfigError
from pathnav.geometry import Box

SLIDE = Box(300, 200, 5000, 4000)
numbers = st.floats(0, 1)


@st.composite
def regions(draw: st.DrawFn) -> tuple[Box, tuple[float, float]]:
    """Return a region inside the slide, with whole or broken pixels, and a point in it."""
    whole = draw(st.booleans())
    cut = (lambda number: float(int(number))) if whole else float
    left, right = sorted((draw(numbers), draw(numbers)))
    above, below = sorted((draw(numbers), draw(numbers)))
    region = Box(
        cut(SLIDE.x + left * (SLIDE.width - 1)),
        cut(SLIDE.y + above * (SLIDE.height - 1)),
        cut((right - left) * (SLIDE.width - 1)) + 1,
        cut((below - above) * (SLIDE.height - 1)) + 1,
    ).intersection(SLIDE)
    centre = region.clamp_point((region.x + draw(numbers) * region.width, region.y + draw(numbers) * region.height))
    return region, centre


@given(regions(), st.floats(0, 0.5), st.integers(), st.text(max_size=3))
def test_a_shifted_region_keeps_its_size_the_target_and_the_slide(
    case: tuple[Box, tuple[float, float]], share: float, seed: int, node: str
) -> None:
    region, centre = case
    shifted = jittered(region, centre, SLIDE, share, (seed, "slide", node))
    tiny = 1e-9
    assert (shifted.width, shifted.height) == (region.width, region.height)
    assert abs(shifted.x - region.x) <= share * region.width + tiny
    assert abs(shifted.y - region.y) <= share * region.height + tiny
    assert Box(shifted.x - tiny, shifted.y - tiny, shifted.width + 2 * tiny, shifted.height + 2 * tiny).holds_point(
        centre
    )
    assert shifted.x >= SLIDE.x - tiny and shifted.right <= SLIDE.right + tiny
    assert shifted.y >= SLIDE.y - tiny and shifted.bottom <= SLIDE.bottom + tiny


def test_a_shift_depends_on_seed_slide_and_node_and_on_nothing_else() -> None:
    region = Box(1000, 1000, 1000, 1000)
    shift = jittered(region, region.centre, SLIDE, 0.25, (7, "slide", "a"))
    assert shift == jittered(region, region.centre, SLIDE, 0.25, (7, "slide", "a"))
    others = [
        jittered(region, region.centre, SLIDE, 0.25, seed)
        for seed in ((8, "slide", "a"), (7, "s", "a"), (7, "slide", "b"))
    ]
    assert shift not in others


def test_shifts_fill_a_quarter_of_the_side_evenly_both_ways() -> None:
    region = Box(2000, 1500, 1000, 800)
    shifts = [jittered(region, region.centre, SLIDE, 0.25, (seed, "s", "n")) for seed in range(4000)]
    across, down = ([int(getattr(s, axis) - getattr(region, axis)) for s in shifts] for axis in "xy")
    assert (min(across), max(across)) == (-250, 250)
    assert (min(down), max(down)) == (-200, 200)
    # The mean of 4,000 uniform draws has a standard error of 2.3 px on x.
    assert abs(sum(across) / 4000) < 10
    assert 900 < sum(shift > 125 for shift in across) < 1100


def test_a_region_that_fills_the_slide_stays() -> None:
    assert jittered(SLIDE, SLIDE.centre, SLIDE, 0.25, (1, "s", "n")) == SLIDE


@given(st.lists(st.sampled_from("abcde"), min_size=2, max_size=30), st.integers(0, 5))
def test_every_query_gets_anothers_finding_and_its_own_text_only_where_there_is_no_other_way(
    texts: list[str], seed: int
) -> None:
    findings = {f"q{number}": text for number, text in enumerate(texts)}
    if len(set(texts)) < 2:
        with pytest.raises(ConfigError, match="two different findings at 10x"):
            swapped(findings, 10, seed)
        return
    giver = swapped(findings, 10, seed)
    assert sorted(giver.values()) == sorted(findings), "every finding is given once"
    assert all(name != other for name, other in giver.items())
    same = sum(findings[name] == findings[other] for name, other in giver.items())
    most = max(Counter(texts).values())
    assert same == max(0, 2 * most - len(texts)), "the fewest there can be"


def test_swaps_depend_on_the_seed_and_not_on_the_order_of_the_queries() -> None:
    findings = {f"q{number}": f"finding {number}" for number in range(12)}
    backwards = dict(reversed(findings.items()))
    assert swapped(findings, 10, 1) == swapped(backwards, 10, 1)
    assert swapped(findings, 10, 1) != swapped(findings, 10, 2)


def test_texts_that_cannot_all_be_swapped_are_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        swapped({"a": "x", "b": "x", "c": "x", "d": "y"}, 10, 1)
    assert "2 of 4 queries get another query's finding of the same text" in caplog.text
