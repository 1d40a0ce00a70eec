"""What other processes do to a score store: in a module that a spawned process can import."""

from pathlib import Path

from pathnav.explore import ScorerConfiguration, ScoreStore, Source, TileScore
from pathnav.geometry import Box


def write_many(path: Path, configuration: ScorerConfiguration, start: int) -> None:
    """Write the scores of a hundred tiles, one by one."""
    with ScoreStore(path, configuration, "slide") as store:
        for n in range(start, start + 100):
            store.add(40.0, [(Box(n, 0, 1, 1), TileScore(True, 0.5, Source.WORD, start))])
