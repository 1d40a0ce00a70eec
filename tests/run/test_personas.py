"""Whole runs against every persona of the stub: each ends as it must, and its record is whole."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pathnav.model import STUB_MODEL, ChatSettings, StubServer
from pathnav.model.profile import Placement, Profile, load_profile
from pathnav.model.stub_persona import Persona
from pathnav.model.stub_persona_failures import Flaky, Slow
from pathnav.model.stub_personas import PERSONAS
from pathnav.run.exploration import TileSettings
from pathnav.run.explore_request import explore_slide
from pathnav.run.request import locate
from support.commands import Bench
from support.episodes import events, stored
from support.scores import score_rows

Result = dict[str, Any]

PROFILES = ("openai", "mistral", "text")
FINISHED, FORCED, SPEECHLESS, LOST = "finished", "forced", "format_errors", "infra_error"
ELSEWHERE = {
    ("mistral-order", "openai"): LOST,
    ("text-only", "openai"): SPEECHLESS,
    ("text-only", "mistral"): SPEECHLESS,
    **dict.fromkeys((("garrulous", profile) for profile in PROFILES), SPEECHLESS),
    **dict.fromkeys((("overbudget", profile) for profile in PROFILES), FORCED),
}
"""Outcomes by persona and profile; all others are `finished`."""

IN_EPISODES: dict[str, Callable[[Result], bool]] = {
    "no-usage": lambda result: (result["tokens"], result["cost_unknown"]) == (None, "no usage from the server"),
    "flaky": lambda result: result["retries"] > 0 == result["failed_calls"],
    "html-error": lambda result: result["retries"] > 0 == result["failed_calls"],
    "garrulous": lambda result: (result["calls"], result["forced_calls"], result["rois_used"]) == (5, 2, 0),
    "overbudget": lambda result: (result["rois_used"], result["forced_calls"]) == (result["budget"], 2),
}
"""What else must be so with a persona, whatever the profile."""

IN_SEARCHES: dict[str, Callable[[Result], bool]] = {
    "no-usage": lambda result: result["tokens"] is None,
    "flaky": lambda result: result["retries"] > 0,
    "html-error": lambda result: result["retries"] > 0,
    "garrulous": lambda result: result["unparsed"] == scored(result) and result["calls"] == 2 * scored(result),
}


QUICK = {
    *((persona, "openai") for persona in PERSONAS),
    *((persona, "text") for persona in PERSONAS if persona not in ("flaky", "slow", "html-error")),
    *((persona, "mistral") for persona in ("strict", "mistral-order")),
}
"""Cells that neither wait for a second or two nor repeat what another profile tells."""

CELLS = [
    pytest.param(persona, profile, marks=[] if (persona, profile) in QUICK else [pytest.mark.slow])
    for persona in PERSONAS
    for profile in PROFILES
]


def played(name: str) -> Persona:
    """Return a persona that waits for no one."""
    quick: dict[str, Persona] = {"slow": Slow(delay_s=0.05), "flaky": Flaky(stall_s=0.05)}
    return quick.get(name) or PERSONAS[name]()


def asked(bench: Bench, persona: str, profile: Profile) -> Result:
    """Return the result of one question."""
    with StubServer(persona=played(persona)) as server:
        model = ChatSettings(server.base_url, STUB_MODEL, profile=profile)
        locate(bench.slide, tree=bench.tree, query_id="a1", model=model, out=bench.folder / "out")
    return stored(bench.folder / "out")


def searched(bench: Bench, persona: str) -> Result:
    """Return the result of a search of the whole slide."""
    tiles = TileSettings(tile_px=256, min_tissue=0)
    with StubServer(persona=played(persona)) as server:
        model = ChatSettings(server.base_url, STUB_MODEL)
        explore_slide(bench.slide, schedule=(1, 1, 1), model=model, tiles=tiles, out=bench.folder / "out")
    return stored(bench.folder / "out")


def scored(result: Result) -> int:
    """Return how many tiles of a search were scored."""
    return sum(level["scored"] for level in result["levels"])


def sources(out: Path) -> list[str]:
    """Return where each stored score came from."""
    return [source for (source,) in score_rows(out, "source")]


def check_record(out: Path, result: Result) -> None:
    """Check that each step of an episode is on record, once, and that no look was beyond the budget."""
    found = events(out)
    assert len({event["id"] for event in found}) == len(found)
    of_kind = {
        kind: [event for event in found if event["kind"] == kind] for kind in ("request", "reply", "tool", "roi")
    }
    replies = of_kind["reply"]
    assert [reply["id"] for reply in replies] == [f"reply:{turn}" for turn in range(result["calls"])]
    assert len(of_kind["request"]) == result["calls"] + result["failed_calls"]
    assert [call["id"] for reply in replies for call in reply["calls"]] == [one["call_id"] for one in of_kind["tool"]]
    assert len(of_kind["roi"]) == len(result["rois"]) == result["rois_used"] <= result["budget"]
    assert sum(reply["retries"] for reply in replies) == result["retries"]
    assert (result["box"] is not None) is (result["outcome"] in (FINISHED, FORCED))


@pytest.mark.parametrize(("persona", "profile"), CELLS)
def test_every_episode_ends_as_it_must_and_nothing_is_lost(bench: Bench, persona: str, profile: str) -> None:
    result = asked(bench, persona, load_profile(profile))
    assert result["outcome"] == ELSEWHERE.get((persona, profile), FINISHED), result["reason"]
    assert IN_EPISODES.get(persona, lambda _: True)(result), result
    check_record(bench.folder / "out", result)


@pytest.mark.parametrize("persona", PERSONAS)
def test_every_search_comes_to_its_end_and_every_score_is_kept(bench: Bench, persona: str) -> None:
    result = searched(bench, persona)
    assert result["outcome"] == FINISHED, result["reason"]
    assert IN_SEARCHES.get(persona, lambda _: True)(result), result
    expected = {"no-logprobs": "stated", "garrulous": "unparsed"}.get(persona, "logprobs")
    assert sources(bench.folder / "out") == [expected] * scored(result)
    assert scored(result) == (1 if persona == "garrulous" else 21)  # without a Yes there is nothing to look closer at


@pytest.mark.parametrize(
    ("persona", "profile", "said"),
    [
        ("strict", Profile(placement=Placement.TOOL), "answered HTTP 400 Bad Request: 'messages[3]' with role 'tool'"),
        ("mistral-order", Profile(), "HTTP 400 Bad Request: expected the role 'assistant' after the role 'tool'"),
    ],
)
def test_a_server_that_wants_other_messages_is_no_fault_of_the_agents(
    bench: Bench, persona: str, profile: Profile, said: str
) -> None:
    result = asked(bench, persona, profile)
    assert result["outcome"] == LOST and said in result["reason"]
    assert (result["iou"], result["failed_calls"], result["retries"]) == (None, 1, 0)
    check_record(bench.folder / "out", result)
    again = asked(bench, "plain", profile)
    assert again["outcome"] == FINISHED and again["rois"][: result["rois_used"]] == result["rois"]


def test_images_that_are_dropped_in_tool_messages_leave_an_episode_that_ends(bench: Bench) -> None:
    result = asked(bench, "silent-drop", Profile(placement=Placement.TOOL))
    assert result["outcome"] == FINISHED and result["rois_used"] > 0
    check_record(bench.folder / "out", result)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_call_that_was_cut_off_is_answered_and_made_again(bench: Bench, profile: str) -> None:
    asked(bench, "truncated-json", load_profile(profile))
    found = events(bench.folder / "out")
    cut = [event["id"] for event in found if event["kind"] == "reply" and event["finish_reason"] == "length"]
    assert "reply:1" in cut
    (answer,) = [event["reply"] for event in found if event["id"] == "tool:1:0"]
    assert '"error"' in answer
