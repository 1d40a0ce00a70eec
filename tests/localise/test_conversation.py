"""What goes over the wire: legal for strict servers in every placement, with as many images as the profile says."""

import itertools
from typing import Any

import pytest

from pathnav.cohort.query import Query
from pathnav.localise.conversation import Message, chat_messages
from pathnav.model.profile import Placement, Profile
from pathnav.slide import Slide
from support.chat_server import call
from support.playing import Played


def tool(call_id: str, image: str | None = None) -> Message:
    shown = {"caption": f"Image of {call_id}", "sha256": image} if image else None
    return {"role": "tool", "call_id": call_id, "name": "extract_roi", "text": '{"rois_left": 1}', "image": shown}


def assistant(*call_ids: str, text: str = "") -> Message:
    return {
        "role": "assistant",
        "text": text,
        "calls": [{"id": i, "name": "extract_roi", "arguments": "{}"} for i in call_ids],
    }


def user(text: str) -> Message:
    return {"role": "user", "parts": [{"text": text}]}


HISTORY = [
    {"role": "system", "text": "s"},
    {"role": "user", "parts": [{"text": "task"}, {"image": "a"}]},
    assistant("c1", "c2", "c3"),
    tool("c1", "b"),
    tool("c2"),
    tool("c3", "c"),
    user("report now"),
    assistant(text="no"),
    user("please"),
]


def sent(placement: Placement, history: list[Message] = HISTORY) -> list[dict[str, Any]]:
    return chat_messages(history, lambda name: name.encode(), Profile(placement=placement), "high")


def roles(placement: Placement) -> list[str]:
    return [message["role"] for message in sent(placement)]


def test_by_default_replies_come_first_and_one_user_message_has_all_images_and_what_is_said_after() -> None:
    assert roles(Placement.USER_AFTER_TOOLS) == [
        "system", "user", "assistant", "tool", "tool", "tool", "user", "assistant", "user",
    ]  # fmt: skip
    after_tools = sent(Placement.USER_AFTER_TOOLS)[6]["content"]
    assert [part.get("text", "image") for part in after_tools] == [
        "Image of c1", "image", "Image of c3", "image", "report now",
    ]  # fmt: skip


def test_a_bridge_puts_an_assistant_sentence_between_tools_and_user_also_without_an_image() -> None:
    assert roles(Placement.BRIDGE) == [
        "system", "user", "assistant", "tool", "tool", "tool", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    history = [assistant("c1"), tool("c1"), user("report now")]
    assert [m["role"] for m in sent(Placement.BRIDGE, history)] == ["assistant", "tool", "assistant", "user"]


def test_images_in_tool_messages_only_where_that_was_chosen() -> None:
    found = sent(Placement.TOOL)
    assert [part["type"] for part in found[3]["content"]] == ["text", "text", "image_url"]
    assert found[4]["content"] == '{"rois_left": 1}'
    for placement in (Placement.USER_AFTER_TOOLS, Placement.BRIDGE):
        assert all(isinstance(m["content"], str) for m in sent(placement) if m["role"] == "tool")


@pytest.mark.parametrize("placement", list(Placement))
def test_roles_never_repeat_except_tool_replies_and_each_call_is_answered_in_order(placement: Placement) -> None:
    found = sent(placement)
    for before, after in itertools.pairwise(found):
        assert before["role"] != after["role"] or after["role"] == "tool"
    asked = [call["id"] for m in found for call in m.get("tool_calls", [])]
    assert [m["tool_call_id"] for m in found if m["role"] == "tool"] == asked


def test_old_images_leave_the_conversation_and_the_overview_stays(slide: Slide, query: Query) -> None:
    looks = [call("extract_roi", {"x": 64 * n, "y": 0, "w": 64, "h": 64, "reason": ""}) for n in range(3)]
    end = call("finish_and_report", {"conclusion": "", "bbox": [0, 0, 9, 9], "confidence": 0})
    played = Played(slide, query, [*looks, end], profile=Profile(images_live=2))
    first, last = played.requests[0].jpegs, played.requests[3].jpegs
    assert len(last) == 2 and last[0] == first[0]
    assert last[1] not in played.requests[2].jpegs
    assert played.requests[3].text.count("(This image is no longer shown.)") == 2
    sent = [event["images_sent"] for event in played.recorder.events.values() if event["kind"] == "reply"]
    assert sent == [1, 2, 2, 2]
