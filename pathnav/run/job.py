"""What is run many times: an episode, or a search of a slide; and where it is run."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pathnav.errors import PathnavError, RunStopped
from pathnav.records import JsonObject
from pathnav.run.case import SlideSource
from pathnav.run.endpoint import ChatClients
from pathnav.run.folder import RunFolder
from pathnav.run.open_slides import OpenSlides

if TYPE_CHECKING:
    from pathnav.explore import TileTree
    from pathnav.model import ChatSettings


class Stop:
    """Whether nothing of a run is to go on; shared by its threads."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def check(self) -> None:
        """Refuse to go on once the run is stopped.

        Raises:
            RunStopped: If it is.
        """
        if self.reason is not None:
            raise RunStopped(self.reason)


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt at a job, which another thread can end.

    Args:
        job: What is run.
        abandon: Records the job as interrupted, from another thread; does nothing once it has ended.
        ending: Held while its end is written.
        has_ended: Whether that is done: what the job's own thread comes to afterwards is not kept.
    """

    job: "Job"
    abandon: Callable[[], None] = field(default=lambda: None)
    ending: threading.Lock = field(default_factory=threading.Lock)
    has_ended: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Workplace:
    """Where jobs are run; threads share it.

    Args:
        folder: An open run folder.
        slides: The run's slides.
        clients: The run's endpoints.
        trees: Tile trees by slide and settings: a tissue mask takes seconds, and the scorers of a slide share it.
        sharing: Locks by what jobs share, such as a file of scores: in one process they run one after the other.
        stop: Whether the run is stopped.
        episode_minutes: After so many minutes a failed request of an episode is not repeated; None for never.
        on_tiles: Told, while tiles are scored, which and how many.
        on_calls: Told how many more requests a search made.
    """

    folder: RunFolder
    slides: OpenSlides
    clients: ChatClients = field(default_factory=ChatClients)
    trees: "dict[object, TileTree]" = field(default_factory=dict)
    sharing: dict[str, threading.Lock] = field(default_factory=dict)
    stop: Stop = field(default_factory=Stop)
    episode_minutes: float | None = None
    on_tiles: Callable[[str], None] = lambda told: None
    on_calls: Callable[[int], None] = lambda calls: None


class Job(Protocol):
    """What the runner knows of an episode or a search."""

    units: str

    @property
    def source(self) -> SlideSource:
        """How its slide is opened."""

    @property
    def model(self) -> "ChatSettings | None":
        """The endpoint that it asks, with the seed that is sent; None where it asks nobody."""

    @property
    def keys(self) -> Sequence[str]:
        """The names of its results in a run folder."""

    def due(self, folder: RunFolder) -> Sequence[str]:
        """Return the keys of the results that are still to come.

        Raises:
            RecordError: If a file is damaged.
        """

    def run(self, at: Workplace, attempt: Attempt) -> Sequence[JsonObject]:
        """Run it to its end, write its results, and return those that were made now.

        Raises:
            InUse: If another process is at it.
            EndpointUnreachable: If the endpoint is out of reach and has never answered.
            KeyboardInterrupt: After it was recorded as interrupted.
            RecordError: If the record cannot be written.
        """


def sentence(error: BaseException) -> str:
    """Return an error of pathnav's with its remedy, any other with its type."""
    return error.with_remedy if isinstance(error, PathnavError) else f"{type(error).__name__}: {error}".rstrip(": ")
