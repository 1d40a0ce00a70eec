"""How many requests may be under way at one endpoint: it gropes for what the server bears, and remembers it.

As TCP does: half where the server refuses, or what it bore of a crowd, whichever is less; then one more for as many
answers as there are places. The number that was refused is not tried again before a pause is over, which doubles with
each refusal and halves where more is borne than before. Pure arithmetic: no threads, the clock is handed in.
"""

FIRST_PAUSE_S = 15.0
LONGEST_PAUSE_S = 240.0
"""A server that bears more again is tried after four minutes at most."""
_PROOF = 2  # rounds of answers after which a number that was refused once is borne


class Places:
    """The places of one endpoint.

    Args:
        limit: The most there may ever be; so many there are until the server refuses.
    """

    def __init__(self, limit: int) -> None:
        self.size = self._limit = limit
        self._answers = 0  # since the size changed
        self._crowd = 0  # requests that were under way when the first of them was refused
        self._refused_at: int | None = None  # the least number that was refused
        self._pause_s = FIRST_PAUSE_S / 2
        self._again_s = float("-inf")

    def answered(self, now_s: float) -> None:
        """Note an answer."""
        self._answers += 1
        refused_at = self._refused_at
        if refused_at is not None and self.size >= refused_at:
            if self._answers < _PROOF * self.size:
                return
            self._refused_at, self._pause_s = None, max(FIRST_PAUSE_S, self._pause_s) / 2
        elif refused_at is not None and self.size + 1 >= refused_at and now_s < self._again_s:
            return
        if self.size < self._limit and self._answers >= self.size:
            self.size, self._answers = self.size + 1, 0

    def refused(self, now_s: float, crowd: int) -> None:
        """Note that the server refused the first of the requests that are under way together.

        Args:
            now_s: Seconds.
            crowd: How many they are.
        """
        self._crowd, self._answers = crowd, 0
        if self._refused_at is not None and crowd >= self._refused_at:
            self.size = max(1, self._refused_at - 1)  # which was borne
        else:
            self._refused_at, self.size = max(2, crowd), max(1, crowd // 2)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._again_s = now_s + self._pause_s

    def refused_too(self) -> None:
        """Note that a further one of the same requests was refused: the server bears one less of them."""
        self._crowd -= 1
        self.size = max(1, min(self.size, self._crowd - 1))
        self._refused_at = max(2, min(self._refused_at or self._limit, self._crowd))
