"""How to go on after a failure that is not the agent's: by the same command, once what stands in its way is mended."""

import re
from collections.abc import Iterable

_STATUS = re.compile(r"answered HTTP (\d{3})\b")
_USED_UP = re.compile(r"insufficient_quota|billing_hard_limit|exceeded your current quota", re.IGNORECASE)
"""Of HTTP 429, which otherwise asks for patience: these a second try does not help."""
_RETRIED = (408, 425, 429)
_SETTINGS = {
    401: "the key",
    402: "the account",
    403: "the key and what it may use",
    404: "the base URL and the model's name",
}


def to_mend(reason: str | None) -> str | None:
    """Return what must be mended before the same command can do better; None where a second try may help.

    Args:
        reason: What a record says about an episode that was lost.
    """
    said = reason or ""
    if re.match(r"(scorer|agent|tool) '[^']+' \(.+\.py\) ", said):
        return "your plug-in"
    if "cannot be used as a store of scores" in said:
        return "or move away scores.sqlite"
    if "answered HTTP 200 with something that is not a chat completion" in said:
        return "the base URL, or the server behind it"
    if re.search(r"answered HTTP 200 with a web page|\bredirects to .*not followed", said):
        return "the base URL"
    found = _STATUS.search(said)
    if found is None:
        return None
    status = int(found[1])
    if _USED_UP.search(said):
        return "the quota that is used up"
    if status in _SETTINGS:
        return _SETTINGS[status]
    if status == 400:  # an order of roles, or a place for images, that a profile can mend
        return "what the endpoint complains of (pathnav doctor writes a profile that it takes)"
    is_refusal = 400 <= status < 500 and status not in _RETRIED
    return "what the endpoint complains of" if is_refusal else None


def way_on(reason: str | None, again: str) -> str:
    """Return how to go on after one failure.

    Args:
        reason: What the record says about it.
        again: What to do where nothing is to be mended, such as `run the same command again`.
    """
    mend = to_mend(reason)
    return f"mend {mend} first, then {again}" if mend else again


class Losses:
    """Collects why episodes of a run were lost to infrastructure, in the order in which it happened."""

    def __init__(self) -> None:
        self._reasons: dict[str, None] = {}

    def add(self, reason: str | None) -> None:
        """Note a reason; the same one twice is one."""
        if reason:
            self._reasons[reason] = None

    def sentence(self, what: str) -> str:
        """Return what was lost, why, and how to go on.

        Args:
            what: The first half of the sentence, such as `2 of 9 episodes were lost`.
        """
        mend = _listed(found for reason in self._reasons if (found := to_mend(reason)))
        first = next((reason for reason in self._reasons if to_mend(reason)), next(iter(self._reasons), None))
        further = f" (and {len(self._reasons) - 1} other reasons)" if len(self._reasons) > 1 else ""
        why = f": {first}{further}" if first else ""
        again = f"mend {mend} first, then the same command tries them again" if mend else ""
        return f"{what}{why}; {again or 'the same command tries them again'}"


def _listed(parts: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(parts))
