"""What an environment writes to while an episode runs: the episode's log and the run's images."""

from collections.abc import Callable
from typing import Any

from pathnav.records import EventLog, ImageStore, JsonObject


class RunRecorder:
    """The `Recorder` of an episode on disk.

    An agent that cannot resume starts over after a crash. What it did before stays in the log, and what it does now is
    written under ids of its own: the `take`, counted from 1, stands in every event.

    Args:
        log: The episode's log.
        images: The run's images.
        check: Called before each event; raises where the episode must not go on.
        resumes: Whether the agent goes on where it stopped, in the same take.
    """

    def __init__(self, log: EventLog, images: ImageStore, check: Callable[[], None], *, resumes: bool) -> None:
        self._log, self._images, self._check = log, images, check
        takes = [event["take"] for event in log if event["kind"] == "start"]
        self.attempt = len(takes) + 1
        self.take = 1 if resumes or not takes else max(takes) + 1

    def _id(self, id: str) -> str:
        return id if self.take == 1 else f"take{self.take}:{id}"

    def event(self, id: str, kind: str, **fields: Any) -> None:
        """Append an event; an id that is already there is left as it is."""
        if kind != "reply":  # which is paid for
            self._check()
        self._log.append({"id": self._id(id), "kind": kind, "take": self.take, **fields})

    def recall(self, id: str) -> JsonObject | None:
        """Return the event of an id, or None."""
        return self._log.get(self._id(id))

    def image(self, jpeg: bytes) -> str:
        """Keep an encoded image and return its name, the SHA-256 of its bytes in hex."""
        return self._images.save(jpeg)

    def load_image(self, sha256: str) -> bytes:
        """Return the bytes of a kept image."""
        return self._images.load(sha256)

    def events(self, kind: str) -> list[JsonObject]:
        """Return the events of a kind in this take, in their order."""
        return [event for event in self._log if event["kind"] == kind and event["take"] == self.take]

    def events_of_all_takes(self, kind: str) -> list[JsonObject]:
        """Return the events of a kind in their order, those of takes that were given up included: they cost money."""
        return [event for event in self._log if event["kind"] == kind]
