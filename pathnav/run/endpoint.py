"""The chat endpoints of a run: the one that is named, or the offline stub where none is."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathnav.errors import ModelError
    from pathnav.model import ChatClient, ChatSettings
    from pathnav.model.gate import Gate, Rates
    from pathnav.model.guards import Guard


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
    """One client for each endpoint, model and decoding of a run, and one gate for each endpoint; threads may share it.

    They are closed at the end of a `with` block.

    Args:
        rates: How each endpoint may be asked.
        guard: What the run may use.
    """

    def __init__(self, rates: "Rates | None" = None, guard: "Guard | None" = None) -> None:
        self._rates, self._guard = rates, guard
        self._clients: dict[tuple[ChatSettings, int], ChatClient] = {}
        self._gates: dict[str, Gate] = {}
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._closed: ModelError | None = None

    def get(self, settings: "ChatSettings | None", connections: int = CONNECTIONS) -> "ChatClient | None":
        """Return the client of an endpoint, with so many connections; None where there is none."""
        if settings is None:
            return None
        name = (settings, connections)
        with self._lock:
            if name not in self._clients:
                from pathnav.model import ChatClient

                gate = self._gate(settings, connections)
                made = ChatClient(settings, connections=connections, gate=gate)
                self._clients[name] = self._stack.enter_context(made)
            return self._clients[name]

    def _gate(self, settings: "ChatSettings", connections: int) -> "Gate":
        from pathnav.model.gate import FAILED_CALLS_IN_A_ROW, Gate, Rates

        if settings.endpoint not in self._gates:
            rates = self._rates or Rates(connections)
            gate = Gate(rates, self._guard, stops_after=FAILED_CALLS_IN_A_ROW)
            self._gates[settings.endpoint] = gate
            if self._closed is not None:
                gate.close(self._closed)
        return self._gates[settings.endpoint]

    def has_answered(self, settings: "ChatSettings | None") -> bool:
        """Return whether an endpoint has answered in this run."""
        with self._lock:
            gate = self._gates.get(settings.endpoint) if settings is not None else None
        return gate is not None and gate.answered

    @property
    def stopped(self) -> "ModelError | None":
        """Why an endpoint is not asked any more; None while all are."""
        with self._lock:
            gates = list(self._gates.values())
        return next((gate.closed for gate in gates if gate.closed is not None), self._closed)

    def stop(self, error: "ModelError") -> None:
        """Ask nothing any more: whoever waits for an endpoint, or comes later, gets this error."""
        with self._lock:
            self._closed = self._closed or error
            gates = list(self._gates.values())
        for gate in gates:
            gate.close(error)

    def __enter__(self) -> "ChatClients":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clients.clear()
        self._stack.close()
