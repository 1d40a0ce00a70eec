"""Where an episode writes what happened: the contract, and one that keeps it in memory."""

import hashlib
from typing import Any, Protocol

Event = dict[str, Any]


class Recorder(Protocol):
    """Take down events and images; each id is written once, so that repeated work leaves no second trace."""

    def event(self, id: str, kind: str, **fields: Any) -> None:
        """Append an event; an id that is already there is left as it is."""

    def recall(self, id: str) -> Event | None:
        """Return the event of an id, or None."""

    def image(self, jpeg: bytes) -> str:
        """Keep an encoded image and return its name, the SHA-256 of its bytes in hex."""

    def load_image(self, sha256: str) -> bytes:
        """Return the bytes of a kept image."""


class MemoryRecorder:
    """A recorder that keeps all in memory: for an environment driven by hand, and for tests."""

    def __init__(self) -> None:
        self.events: dict[str, Event] = {}
        self.images: dict[str, bytes] = {}

    def event(self, id: str, kind: str, **fields: Any) -> None:
        """Keep an event under its id, once."""
        self.events.setdefault(id, {"id": id, "kind": kind, **fields})

    def recall(self, id: str) -> Event | None:
        """Return the event of an id, or None."""
        return self.events.get(id)

    def image(self, jpeg: bytes) -> str:
        """Keep an image under its SHA-256."""
        sha256 = hashlib.sha256(jpeg).hexdigest()
        self.images[sha256] = jpeg
        return sha256

    def load_image(self, sha256: str) -> bytes:
        """Return the bytes of a kept image."""
        return self.images[sha256]
