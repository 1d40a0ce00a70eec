"""How long to wait before the next try."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waits with jitter: 1, 2, 4 s ... of which a seeded draw takes off up to half.

    Jitter keeps many workers from coming back in step after one overload.
    """

    tries: int = 4  # in all, the first included
    first_s: float = 1.0
    limit_s: float = 30.0
    retry_after_limit_s: float = 300.0  # a server that asks for more has closed for the day: stop instead

    def wait_s(self, retry: int, draw: float, retry_after_s: float | None = None) -> float:
        """Return the wait in seconds before retry number `retry` (from 0).

        Args:
            retry: 0 after the first failure.
            draw: A uniform draw from [0, 1).
            retry_after_s: What the server asked for; never undercut.
        """
        if retry_after_s is not None:
            return retry_after_s * (1 + draw / 10)
        return min(self.limit_s, self.first_s * 2.0**retry) * (1 - draw / 2)
