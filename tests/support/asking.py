"""A client and the scripted server it asks, for tests of the client."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pathnav.model import ChatClient, ChatSettings
from pathnav.model.gate import Gate, Rates
from support.chat_server import Answer, ChatServer, Request

QUESTION = [{"role": "user", "content": "What do you see?"}]


@contextmanager
def asking(
    answers: Iterable[Answer] | Callable[[Request], Answer],
    waits: list[float] | None = None,
    *,
    answered: bool = False,
    **settings: Any,
) -> Iterator[tuple[ChatClient, ChatServer]]:
    """Give a client and its server.

    Args:
        answers: See `ChatServer`.
        waits: Collects the waits between tries, which take no time.
        answered: Whether the endpoint counts as one that has answered: until it has, it is asked one thing at a time.
        settings: Fields of `ChatSettings` beside the base URL.
    """
    slept: list[float] = [] if waits is None else waits
    with ChatServer(answers) as server:
        made = ChatSettings(**{"base_url": server.base_url, "model": "any", **settings})
        gate = Gate(Rates(16), clock=lambda: sum(slept))
        if answered:
            gate.reached()
        with ChatClient(made, sleep=slept.append, rng=np.random.default_rng(0), gate=gate) as client:
            yield client, server
