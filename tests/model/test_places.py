"""How many requests an endpoint is sent at a time after it has refused some; the clock is a number."""

from hypothesis import given
from hypothesis import strategies as st

from pathnav.model.places import FIRST_PAUSE_S, LONGEST_PAUSE_S, Places


def answer(places: Places, now_s: float, count: int) -> list[int]:
    """Note answers and return the size after each."""
    sizes = []
    for _ in range(count):
        places.answered(now_s)
        sizes.append(places.size)
    return sizes


def test_a_crowd_of_which_most_is_refused_leaves_what_was_borne() -> None:
    places = Places(8)
    places.refused(0, 8)
    assert places.size == 4
    for _ in range(5):
        places.refused_too()
    assert places.size == 2
    assert set(answer(places, FIRST_PAUSE_S - 0.1, 300)) == {2}


def test_places_grow_back_to_one_below_what_was_refused_and_wait_there() -> None:
    places = Places(8)
    places.refused(0, 8)
    sizes = answer(places, 1, 4 + 5 + 6 + 100)
    assert [sizes[at] for at in (2, 3, 8, 14, -1)] == [4, 5, 6, 7, 7]
    assert answer(places, FIRST_PAUSE_S, 1) == [8]


def test_the_pause_before_a_refused_number_is_tried_again_doubles_up_to_four_minutes() -> None:
    places, now_s, pauses = Places(8), 0.0, []
    places.refused(now_s, 3)
    answer(places, now_s, 1)
    while len(pauses) < 7:
        assert places.size == 2
        before = now_s
        while places.size == 2:
            now_s += 1
            answer(places, now_s, 2)
        pauses.append(now_s - before)
        places.refused(now_s, 3)
    assert pauses == [15, 30, 60, 120, 240, LONGEST_PAUSE_S, LONGEST_PAUSE_S]


def test_a_server_that_recovers_is_used_to_the_full_within_four_minutes_and_the_answers_it_takes() -> None:
    places, now_s = Places(8), 0.0
    places.refused(now_s, 8)
    for _ in range(5):
        places.refused_too()
    for _ in range(9):
        now_s += LONGEST_PAUSE_S
        answer(places, now_s, 2)
        places.refused(now_s, 3)
    now_s += LONGEST_PAUSE_S
    answer(places, now_s, 2 + 2 * 3 + 4 + 5 + 6 + 7)
    assert places.size == 8


@given(st.integers(1, 64), st.lists(st.tuples(st.sampled_from(["answer", "refuse", "too"]), st.integers(1, 64))))
def test_there_is_always_a_place_and_never_more_than_the_limit(limit: int, told: list[tuple[str, int]]) -> None:
    places, now_s = Places(limit), 0.0
    for kind, number in told:
        now_s += number
        if kind == "answer":
            answer(places, now_s, number)
        elif kind == "refuse":
            places.refused(now_s, min(number, limit))
        else:
            places.refused_too()
        assert 1 <= places.size <= limit
