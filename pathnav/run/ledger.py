"""What an episode cost, read from its record; what a server did not say stays unknown."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pathnav.run.record import JsonObject


@dataclass(frozen=True, slots=True)
class Ledger:
    """The cost of an episode's recorded calls.

    Args:
        calls: Answers received.
        retries: Tries that failed before them.
        input_tokens: None where an answer came without usage, or none came: a sum over the rest would look whole.
        output_tokens: Likewise.
        images_sent: Images in the requests; one that stays in the conversation counts in each. None without a call.
        pixels_sent: Pixels of these images.
    """

    calls: int
    retries: int
    input_tokens: int | None
    output_tokens: int | None
    images_sent: int | None
    pixels_sent: int | None

    @property
    def tokens(self) -> dict[str, int] | None:
        """Tokens in and out, None where one of them is unknown."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return {"input": self.input_tokens, "output": self.output_tokens}


def ledger(replies: list[JsonObject]) -> Ledger:
    """Return the cost of an episode's `reply` events."""
    usages = [reply["tokens"] for reply in replies]
    known = bool(usages) and all(usage is not None for usage in usages)
    return Ledger(
        calls=len(replies),
        retries=sum(reply["retries"] for reply in replies),
        input_tokens=sum(usage["input"] for usage in usages) if known else None,
        output_tokens=sum(usage["output"] for usage in usages) if known else None,
        images_sent=sum(reply["images_sent"] for reply in replies) if replies else None,
        pixels_sent=sum(reply["pixels_sent"] for reply in replies) if replies else None,
    )


def seconds_before(events: Iterable[JsonObject]) -> float:
    """Return the seconds that earlier attempts at an episode took, each from its start to its last recorded event."""
    total, started, last = 0.0, None, None
    for event in events:
        moment = datetime.fromisoformat(event["time"])
        if event["kind"] == "start":
            total += (last - started).total_seconds() if started and last else 0.0
            started = moment
        last = moment
    return total + ((last - started).total_seconds() if started and last else 0.0)
