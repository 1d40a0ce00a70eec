"""An episode that is stopped anywhere and run again ends as an undisturbed one, with nothing counted or asked twice."""

from typing import Any

import pytest

from pathnav.cohort.query import Query
from pathnav.errors import RecordError
from pathnav.localise import Environment, MemoryRecorder, Outcome, ViewSettings
from pathnav.localise.vlm import VlmAgent
from pathnav.model import ChatClient, ChatSettings
from pathnav.slide import Slide
from support.chat_server import Answer, ChatServer, Request, calls

SMALL = ViewSettings(view_px=128)


class Stopped(BaseException):
    """What stops an episode: like Ctrl-C, no Exception."""


class StoppingRecorder(MemoryRecorder):
    """Stop before the n-th event is kept: after all that follows the one before it."""

    def __init__(self, kept: MemoryRecorder, stop_at: int) -> None:
        super().__init__()
        self.events, self.images = kept.events, kept.images
        self._left = stop_at

    def event(self, id: str, kind: str, **fields: Any) -> None:
        self._left -= 1
        if self._left < 0:
            raise Stopped
        super().event(id, kind, **fields)


def answer(request: Request) -> Answer:
    """Look twice in one turn, then ask for facts, look again, and report: by the number of turns so far."""
    turns = sum(message["role"] == "assistant" for message in request.messages)
    look = {"x": 100 * turns, "y": 50, "w": 200, "h": 200, "reason": f"turn {turns}"}
    if turns == 0:
        return calls(("extract_roi", look), ("extract_roi", {**look, "y": 300}), ids=["a", "b"])
    if turns == 1:
        return calls(("get_image_info", {}), ids=["c"])
    if turns == 2:
        return calls(("extract_roi", look), ids=["d"])
    return calls(("finish_and_report", {"conclusion": "x", "bbox": [1, 2, 30, 40], "confidence": 0.5}), ids=["e"])


def play(slide: Slide, query: Query, server: ChatServer, recorder: MemoryRecorder) -> Environment:
    with ChatClient(ChatSettings(base_url=server.base_url, model="canned")) as chat:
        environment = Environment(slide, query, 4, views=SMALL, recorder=recorder, chat=chat)
        assert VlmAgent().run(environment) is Outcome.FINISHED
        return environment


def story(recorder: MemoryRecorder) -> dict[str, Any]:
    """Everything on record but times."""
    return {name: {**event, "seconds": None} for name, event in recorder.events.items()}


def test_a_run_stopped_at_any_event_and_continued_is_the_undisturbed_run_and_asks_nothing_twice(
    slide: Slide, query: Query
) -> None:
    undisturbed = MemoryRecorder()
    with ChatServer(answer) as server:
        whole = play(slide, query, server, undisturbed)
        assert (whole.rois_used, len(server.requests)) == (3, 4)
        for stop_at in range(len(undisturbed.events) + 1):
            kept = MemoryRecorder()
            if stop_at < len(undisturbed.events):
                with pytest.raises(Stopped):
                    play(slide, query, server, StoppingRecorder(kept, stop_at))
            else:
                play(slide, query, server, kept)
            replies, asked = sum(event["kind"] == "reply" for event in kept.events.values()), len(server.requests)
            continued = play(slide, query, server, kept)
            assert len(server.requests) - asked == 4 - replies
            assert story(kept) == story(undisturbed)
            assert (continued.rois, continued.steps) == (whole.rois, whole.steps)
            assert continued.report_made == whole.report_made


def test_a_turn_on_record_for_another_request_is_an_error_that_says_what_to_do(slide: Slide, query: Query) -> None:
    with ChatServer(answer) as server:
        kept = MemoryRecorder()
        with pytest.raises(Stopped):
            play(slide, query, server, StoppingRecorder(kept, 3))
        kept.events["reply:0"]["request_sha256"] = "of another library"
        with pytest.raises(RecordError, match=r"reply:0 .* another request.*remove the episode's folder"):
            play(slide, query, server, kept)
