"""Which files of a user's folder pathnav may write over: those of its own, told by what they begin with.

A slip of the pen must not cost anyone a picture, an annotation or a slide.
"""

from dataclasses import dataclass
from pathlib import Path

from pathnav.cohort.annotation_geojson import KEPT_FORMAT
from pathnav.errors import ConfigError

PICTURE_KEY, PICTURE_MARK = "Software", "pathnav"


@dataclass(frozen=True, slots=True)
class OwnKind:
    """A kind of file that pathnav writes under a name that the user chooses.

    Args:
        begins: The first bytes.
        has: Bytes near the beginning, after `begins`, that no other program writes.
    """

    begins: bytes
    has: bytes


KEPT_TILES = OwnKind(b"{", KEPT_FORMAT.encode())
PICTURE = OwnKind(b"\x89PNG\r\n\x1a\n", f"tEXt{PICTURE_KEY}\0{PICTURE_MARK}".encode())
_LOOKED_AT = 256  # bytes


def refuse_foreign(what: str, path: Path, kind: OwnKind) -> None:
    """Refuse to write over a file that is not one of a kind.

    Args:
        what: What the message calls the file, e.g. `--geojson`.
        path: The file, which need not exist.
        kind: What may be written over.

    Raises:
        ConfigError: If there is such a file, or it cannot be read.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise ConfigError(f"{what} {path} exists and is no ordinary file; name another file")
    try:
        with path.open("rb") as file:
            start = file.read(_LOOKED_AT)
    except OSError as error:
        raise ConfigError(f"{what} {path} exists and cannot be read: {error.strerror or error}") from error
    if not (start.startswith(kind.begins) and kind.has in start):
        raise ConfigError(f"{what} {path} exists and was not written by pathnav; name another file")
