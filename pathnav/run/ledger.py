"""What an episode cost, read from its record; what a server did not say stays unknown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pathnav.model.prices import Prices
from pathnav.records import JsonObject


@dataclass(frozen=True, slots=True)
class Ledger:
    """The cost of an episode's recorded calls, those of takes that were given up included.

    Args:
        calls: Answers received.
        failed: Calls for which requests were sent, and that never got one.
        forced: Requests in which a tool was required.
        retries: Requests sent beyond the first of each call, those of failed calls included.
        seconds: Waited for answers, retries included.
        input_tokens: None where an answer came without usage, or none came: a sum over the rest would look whole.
        output_tokens: Likewise.
        images_sent: Images in the requests; one that stays in the conversation counts in each. None without a call.
        pixels_sent: Pixels of these images.
        bytes_sent: Bytes of these images, encoded; None without a call, or where a record does not say.
    """

    calls: int
    failed: int
    forced: int
    retries: int
    seconds: float
    input_tokens: int | None
    output_tokens: int | None
    images_sent: int | None
    pixels_sent: int | None
    bytes_sent: int | None

    @property
    def tokens(self) -> dict[str, int] | None:
        """Tokens in and out, None where one of them is unknown."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return {"input": self.input_tokens, "output": self.output_tokens}


def ledger(
    replies: Sequence[JsonObject], requests: Sequence[JsonObject] = (), failed: Sequence[JsonObject] = ()
) -> Ledger:
    """Return the cost of an episode's `reply`, `request` and `failed_call` events."""
    usages = [reply["tokens"] for reply in replies]
    known = bool(usages) and all(usage is not None for usage in usages)
    tries = [call.get("tries", 1) for call in failed]  # older records do not say
    return Ledger(
        calls=len(replies),
        failed=len(tries),
        forced=sum(request["required_tool"] is not None for request in requests),
        retries=sum(reply["retries"] for reply in replies) + sum(tries) - len(tries),
        seconds=round(sum(reply["seconds"] for reply in replies), 3),
        input_tokens=sum(usage["input"] for usage in usages) if known else None,
        output_tokens=sum(usage["output"] for usage in usages) if known else None,
        images_sent=_sum(replies, "images_sent"),
        pixels_sent=_sum(replies, "pixels_sent"),
        bytes_sent=_sum(replies, "image_bytes_sent"),
    )


def _sum(replies: Sequence[JsonObject], name: str) -> int | None:
    """Return the sum of a number over replies; None without one, or where one lacks it, as in older records."""
    found = [reply.get(name) for reply in replies]
    whole = [number for number in found if type(number) is int]
    return sum(whole) if found and len(whole) == len(found) else None


def cost_fields(model: str | None, calls: int, tokens: Mapping[str, int] | None, prices: Prices) -> JsonObject:
    """Return what a result says of the money: a sum, or why it is not known; all null where no model is asked.

    Args:
        model: The model that was asked; None for an agent or a scorer that asks none.
        calls: Answers received.
        tokens: Tokens `input` and `output` of all of them, None where one is unknown.
        prices: The prices at the time.
    """
    if model is None:
        return dict.fromkeys(("cost_usd", "cost_unknown", "prices_date"))
    usd = prices.usd(model, tokens["input"], tokens["output"]) if tokens is not None else None
    reason = None
    if tokens is None:
        reason = "no usage from the server" if calls else "no call was answered"
    elif usd is None:
        reason = f"no price for {model}"
    return {"cost_usd": usd, "cost_unknown": reason, "prices_date": prices.date.isoformat()}


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
