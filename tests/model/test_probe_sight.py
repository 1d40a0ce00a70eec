"""The doctor finds out what a model sees: where, how many pictures, and in what coordinates it answers."""

import numpy as np
import pytest

from pathnav.localise.conversation import chat_messages
from pathnav.model.probe_finding import Result
from pathnav.model.probe_frame import probe_frame
from pathnav.model.probe_pictures import number_picture
from pathnav.model.probe_sight import placed, probe_many, probe_placements, probe_sight
from pathnav.model.probe_tools import probe_tools
from pathnav.model.profile import Placement, Profile
from support.model_kinds import Kind
from support.probing import examined, finding, probed


@pytest.mark.parametrize(
    ("kind", "placement", "states"),
    [
        (Kind(tool_images="dropped"), "user_after_tools", ("seen", "seen", "not seen")),
        (Kind(tool_images="refused"), "user_after_tools", ("seen", "seen", "refused")),
        (Kind(user_after_tool="refused", tool_images="refused"), "bridge", ("refused", "seen", "refused")),
        (Kind(user_after_tool="dropped"), "bridge", ("not seen", "seen", "seen")),
    ],
)
def test_the_placement_that_the_model_sees_is_found(kind, placement, states) -> None:
    chart = probed(kind, probe_placements, sees=True, acts="native")
    facts = finding(chart, "placement").facts
    assert tuple(facts[name].split(" (")[0] for name in ("user_after_tools", "bridge", "tool")) == states
    assert chart.profile.placement == placement
    assert chart.placed


def test_a_model_without_tools_is_shown_its_pictures_by_the_text_protocol() -> None:
    chart = probed(Kind(tools="refused"), probe_tools, probe_sight, probe_placements)
    assert chart.acts == "text"
    assert (chart.profile.tools, chart.profile.tool_choice) == ("text", "auto")
    assert finding(chart, "placement_text").result is Result.YES
    assert "fails: it answered HTTP 400 Bad Request: tools are not supported" in finding(chart, "tools").seen


def test_the_conversations_of_the_placements_are_those_of_a_run() -> None:
    picture = number_picture(np.random.default_rng(1), 5)
    for placement in Placement:
        sent = placed(picture, placement)
        call = sent[1]["tool_calls"][0]
        history = [
            {"role": "user", "parts": [{"text": sent[0]["content"][0]["text"]}]},
            {
                "role": "assistant",
                "text": sent[1]["content"],
                "calls": [{"id": call["id"], **call["function"]}],
            },
            {
                "role": "tool",
                "call_id": call["id"],
                "name": call["function"]["name"],
                "text": '{"place": "left"}',
                "image": {"caption": "Picture of take_picture (call00001):", "sha256": picture.sha256},
            },
        ]
        profile = Profile(placement=placement)
        assert sent == chat_messages(history, lambda name: picture.jpeg, profile, "high")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Kind(images="guessed"), "the model does not see images: it answers"),
        (Kind(images="refused"), "the server takes no images"),
    ],
)
def test_a_blind_model_is_found_out_and_not_asked_further(kind, said) -> None:
    found = examined(kind)
    assert not found.usable
    assert found.verdict == "the model does not see images: a run would measure nothing"
    assert finding(found, "sight").means.startswith(said)
    left_out = ("placement", "images_per_request", "frame")
    assert {finding(found, name).result for name in left_out} == {Result.NOT_ASKED}
    assert found.chart.line.calls <= 20


@pytest.mark.parametrize(
    ("kind", "limit", "refused"),
    [
        (Kind(most_images=1), 1, True),
        (Kind(most_images=5), 4, True),
        (Kind(most_images=8, drops_further_images=True), 8, False),
        (Kind(), None, None),
    ],
)
def test_the_number_of_pictures_in_a_request_is_found(kind, limit, refused) -> None:
    chart = probed(kind, probe_many, sees=True)
    assert chart.profile.images_per_request == limit
    assert finding(chart, "images_per_request").facts.get("refused") is refused


@pytest.mark.parametrize("frame", ["view_px", "unit", "thousand", "thousand_yx"])
@pytest.mark.parametrize("form", ["xywh", "xyxy"])
def test_the_coordinates_that_a_model_answers_in_are_found(frame, form) -> None:
    chart = probed(Kind(frame=frame, form=form), probe_frame, sees=True)
    assert (chart.profile.frame, chart.profile.box) == (frame, form)
    assert finding(chart, "frame").result is Result.YES


def test_a_model_that_does_as_it_is_told_answers_in_level0_pixels() -> None:
    chart = probed(Kind(frame="level0", form="xyxy"), probe_frame, sees=True)
    assert (chart.profile.frame, chart.profile.box) == ("level0", "xywh")
    assert finding(chart, "frame").facts["native"] == "pixels of the image"


@pytest.mark.parametrize("kind", [Kind(squares="garbage"), Kind(frame="percent"), Kind(frame="px_yx")])
def test_coordinates_that_fit_nothing_are_undecided_and_left_as_they_were(kind) -> None:
    chart = probed(kind, probe_frame, sees=True, settings={"profile": Profile(frame="thousand", box="xyxy")})
    assert finding(chart, "frame").result is Result.UNDECIDED
    assert (chart.profile.frame, chart.profile.box) == ("thousand", "xyxy")
    assert set(chart.undecided) == {"frame", "box"}
