"""A client and the scripted server it asks, for tests of the client."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pathnav.model import ChatClient, ChatSettings
from support.chat_server import Answer, ChatServer, Request

QUESTION = [{"role": "user", "content": "What do you see?"}]


@contextmanager
def asking(
    answers: Iterable[Answer] | Callable[[Request], Answer], waits: list[float] | None = None, **settings: Any
) -> Iterator[tuple[ChatClient, ChatServer]]:
    """Give a client and its server.

    Args:
        answers: See `ChatServer`.
        waits: Collects the waits between tries, which take no time.
        settings: Fields of `ChatSettings` beside the base URL.
    """
    sleep = waits.append if waits is not None else lambda seconds: None
    with ChatServer(answers) as server:
        made = ChatSettings(**{"base_url": server.base_url, "model": "any", **settings})
        with ChatClient(made, sleep=sleep, rng=np.random.default_rng(0)) as client:
            yield client, server
