"""The chat endpoints of a run: the one that is named, or the offline stub where none is."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathnav.model import ChatClient, ChatSettings


CONNECTIONS = 8
"""Requests in flight where a user does not say otherwise."""


@contextmanager
def endpoint(named: "ChatSettings | None", *, needed: bool) -> Iterator["ChatSettings | None"]:
    """Give the endpoint that agents ask: the named one; the stub, in this process, where none is named but needed.

    Args:
        named: What the user named.
        needed: Whether an agent asks at all.
    """
    if named is not None or not needed:
        yield named if needed else None
        return
    from pathnav.model import ChatSettings
    from pathnav.model.stub import STUB_MODEL, StubServer

    with StubServer() as stub:
        yield ChatSettings(base_url=stub.base_url, model=STUB_MODEL)


class ChatClients:
    """One client for each endpoint, model and decoding of a run; closes them at the end of a `with` block."""

    def __init__(self) -> None:
        self._clients: dict[tuple[ChatSettings, int], ChatClient] = {}
        self._stack = ExitStack()

    def get(self, settings: "ChatSettings | None", connections: int = CONNECTIONS) -> "ChatClient | None":
        """Return the client of an endpoint, with so many connections; None where there is none."""
        if settings is None:
            return None
        name = (settings, connections)
        if name not in self._clients:
            from pathnav.model import ChatClient

            self._clients[name] = self._stack.enter_context(ChatClient(settings, connections=connections))
        return self._clients[name]

    def __enter__(self) -> "ChatClients":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clients.clear()
        self._stack.close()
