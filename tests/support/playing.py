"""Play one episode of the vlm agent against canned answers."""

import json
from typing import Any

from pathnav.cohort.query import Query
from pathnav.localise import Environment, MemoryRecorder
from pathnav.localise.vlm import VlmAgent
from pathnav.model import ChatClient, ChatSettings
from pathnav.model.profile import DEFAULT_PROFILE, Profile
from pathnav.slide import Slide
from support.chat_server import Answer, ChatServer, call

LOOK = {"x": 100, "y": 200, "w": 300, "h": 200, "reason": "dark"}
ANSWER = {"conclusion": "there", "bbox": [100, 200, 512, 512], "confidence": 0.7}


class Played:
    """One episode that was played against canned answers."""

    def __init__(
        self,
        slide: Slide,
        query: Query,
        answers: Any,
        *,
        profile: Profile = DEFAULT_PROFILE,
        **options: Any,
    ) -> None:
        self.recorder = MemoryRecorder()
        with ChatServer(answers) as server:
            chat = ChatClient(ChatSettings(base_url=server.base_url, model="canned", profile=profile))
            agent = VlmAgent(**options)
            self.environment = Environment(slide, query, views=agent.views, recorder=self.recorder, chat=chat)
            try:
                self.outcome = agent.run(self.environment)
            finally:
                chat.close()
            self.requests = server.requests

    def replies(self) -> list[dict[str, Any]]:
        """The tool replies in order."""
        return [json.loads(event["reply"]) for event in self.recorder.events.values() if event["kind"] == "tool"]


def report(**changes: Any) -> Answer:
    return call("finish_and_report", {**ANSWER, **changes})
