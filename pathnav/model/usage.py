"""What calls cost, added up; what a server does not say stays unknown."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pathnav.model.reply import Reply


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a number of calls; `a + b` adds.

    Args:
        calls: Answers received.
        retries: Tries that failed before them.
        seconds: Waited for them.
        images: Images in the requests (an image that stays in the conversation counts in each).
        bytes_sent: Length of the request bodies, all tries.
        input_tokens: None once one answer came without usage: a sum over the rest would look like the whole.
        output_tokens: Likewise.
    """

    calls: int = 0
    retries: int = 0
    seconds: float = 0.0
    images: int = 0
    bytes_sent: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0

    @classmethod
    def of(cls, reply: Reply, messages: Iterable[Mapping[str, Any]]) -> "Usage":
        """Return the usage of one call: its reply and the messages it answered."""
        return cls(
            calls=1,
            retries=reply.retries,
            seconds=reply.seconds,
            images=count_images(messages),
            bytes_sent=reply.bytes_sent,
            input_tokens=reply.tokens.input if reply.tokens else None,
            output_tokens=reply.tokens.output if reply.tokens else None,
        )

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            calls=self.calls + other.calls,
            retries=self.retries + other.retries,
            seconds=self.seconds + other.seconds,
            images=self.images + other.images,
            bytes_sent=self.bytes_sent + other.bytes_sent,
            input_tokens=_sum(self.input_tokens, other.input_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
        )


def count_images(messages: Iterable[Mapping[str, Any]]) -> int:
    """Return how many images a conversation holds."""
    contents = (message.get("content") for message in messages)
    parts = (part for content in contents if isinstance(content, list) for part in content)
    return sum(1 for part in parts if isinstance(part, Mapping) and part.get("type") == "image_url")


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
