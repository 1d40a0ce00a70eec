"""Hands out the episodes and searches of a run, each to one thread of one process."""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pathnav.run.folder import RunFolder
from pathnav.run.lease import Lease
from pathnav.run.record import EVENTS_FILE, is_in_use
from pathnav.run.unit import Unit, asks_model, due_keys

_WAIT_S = 0.5  # how soon a waiting thread sees that the run is to end


@dataclass(slots=True, eq=False)
class Held:
    """An episode or a search that a thread runs.

    Args:
        unit: What is run.
        leases: What keeps other processes away from it.
        abandon: Records it as interrupted, from another thread; does nothing once it has ended.
    """

    unit: Unit
    leases: list[Lease]
    abandon: Callable[[], None] = field(default=lambda: None)


class Queue:
    """The work of a run that is still to be done.

    Units that ask no model wait until the endpoint has answered once: one that is out of reach then ends the run before
    anything was done.

    Args:
        due: What is to be run, those that ask a model first.
        folder: An open run folder.
        has_contact: Whether the endpoint has answered.
        is_over: Whether nothing more is to be begun.
    """

    def __init__(
        self, due: Iterable[Unit], folder: RunFolder, has_contact: Callable[[], bool], is_over: Callable[[], bool]
    ) -> None:
        self._pending = deque(due)
        self._due = {id(unit): len(due_keys(unit, folder)) for unit in self._pending}
        self._folder, self._has_contact, self._is_over = folder, has_contact, is_over
        self._changed = threading.Condition()
        self._elsewhere: list[Unit] = []
        self.running: list[Held] = []
        self.kept = 0

    @property
    def with_others(self) -> tuple[Unit, ...]:
        """What other processes are at, as far as it is not finished."""
        return tuple(unit for unit in self._elsewhere if due_keys(unit, self._folder))

    @property
    def elsewhere(self) -> int:
        """How many results other processes are at."""
        return sum(len(due_keys(unit, self._folder)) for unit in self._elsewhere)

    def next(self) -> Held | None:
        """Return what to run next, held by a lease; None where nothing is left that no one else runs.

        Raises:
            RecordError: If a record is damaged, or a lease cannot be written.
        """
        with self._changed:
            while not self._is_over():
                if self._may_begin():
                    held = self._held(self._pending.popleft())
                    if held is not None:
                        self.running.append(held)
                        return held
                elif self._pending:
                    self._changed.wait(_WAIT_S)
                elif not self._look_again():
                    return None
        return None

    def done(self, held: Held) -> None:
        """Give back what has ended."""
        with self._changed:
            self.running.remove(held)
            self._folder.release(held.leases)
            self._changed.notify_all()

    def leave(self, held: Held) -> None:
        """Give back what cannot be run now; it is looked at again when all else is done."""
        with self._changed:
            self.running.remove(held)
            self._folder.release(held.leases)
            self._elsewhere.append(held.unit)
            self._changed.notify_all()

    def _may_begin(self) -> bool:
        """Return whether there is a first unit that need not wait for another one's answer."""
        if not self._pending:
            return False
        is_awaited = any(asks_model(held.unit) for held in self.running)
        return asks_model(self._pending[0]) or not is_awaited or self._has_contact()

    def _held(self, unit: Unit) -> Held | None:
        """Hold a unit, unless somebody else does or has finished it."""
        leases = self._folder.claim(due_keys(unit, self._folder))
        if leases is None:
            self._elsewhere.append(unit)
            return None
        if not due_keys(unit, self._folder):  # once more: another process may have finished it since
            self.kept += self._due[id(unit)]
            self._folder.release(leases)
            return None
        return Held(unit, leases)

    def _look_again(self) -> bool:
        """Return whether something that others held can be run here after all, as when its process is gone."""
        before, self._elsewhere = self._elsewhere, []
        for unit in before:
            is_free = all(self._is_free(key) for key in due_keys(unit, self._folder))
            (self._pending if is_free else self._elsewhere).append(unit)
        return bool(self._pending)

    def _is_free(self, key: str) -> bool:
        """Return whether nobody holds an episode, nor has its record open, as a suspended process has."""
        return self._folder.leases.is_free(key) and not is_in_use(self._folder.episode(key) / EVENTS_FILE)
