"""Queries and targets: what an agent may know, and what it may not."""

from dataclasses import fields
from typing import Any

import pytest

from pathnav.cohort import protocol
from pathnav.cohort.query import Query, Target, slide_handle
from pathnav.errors import ConfigError
from pathnav.geometry import Box

PLAIN: dict[str, Any] = {
    "handle": "slide-000000",
    "magnification": 10,
    "finding": "Necrosis.",
    "region": Box(0, 0, 100, 100),
    "target_width": 10,
    "target_height": 10,
    "budget": 7,
}


def test_a_query_has_no_field_of_a_target() -> None:
    assert not {field.name for field in fields(Query)} & {field.name for field in fields(Target)}
    assert not issubclass(Target, Query) and not issubclass(Query, Target)


def test_a_handle_tells_slides_apart_and_nothing_else() -> None:
    assert slide_handle("abc") == slide_handle("abc") != slide_handle("abd")
    assert slide_handle("malignant.svs").removeprefix("slide-").isalnum()
    assert len(slide_handle("abc")) == len("slide-3fa9c1")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"magnification": 7}, "magnification must be 2.5, 10 or 40, got 7"),
        ({"finding": " "}, "finding must say what to look for, got an empty text"),
        ({"region": Box(5, 5, 0, 9)}, r"search region must have an area, got \[5, 5, 0, 9\]"),
        ({"target_width": 0}, "target size must be positive, got 0 x 10"),
        ({"target_height": float("nan")}, "target size must be positive, got 10 x nan"),
        ({"budget": 0}, "budget must be at least 1 ROI, got 0"),
    ],
)
def test_a_query_that_cannot_be_asked_is_refused_in_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"^{sentence}$"):
        Query(**{**PLAIN, **changes})


def test_the_protocols_budgets_and_step_limit() -> None:
    assert dict(protocol.BUDGETS) == {"tight": (5, 3, 2), "base": (10, 7, 5), "loose": (20, 15, 10)}
    assert [protocol.budget_for(m) for m in protocol.MAGNIFICATIONS] == [10, 7, 5]
    assert protocol.max_steps(5) == 21
