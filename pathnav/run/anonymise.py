"""A copy of a run folder for a reviewer: without paths, file names, addresses, and names of users and machines.

Two nets. Strings that are known to be such names, from the run's own records, are replaced wherever they stand, slides
by their fingerprints. What looks like a path, a file, an address is then replaced by its shape, also in tracebacks and
in what a model said. Images are copied only where they are bare JPEG: nothing in the file but the picture.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pathnav.errors import ConfigError, RecordError
from pathnav.records import ImageStore, JsonObject, read_events, read_json, write_bytes_atomic, write_json_atomic
from pathnav.run.folder import EXPLORATION_FORMAT, RESULT_FILE, RESULT_FORMAT, RunFolder
from pathnav.run.names_of_run import Names, described, names_of
from pathnav.run.replay_record import EVENTS_FILE

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SCAN = 0xDA
_BARE_SEGMENTS = {0xDB, 0xC0, 0xC1, 0xC2, 0xC4, 0xDD, _SCAN}
"""Tables, frame, restart interval and scan: what decoding needs, and no more."""
_FIXED_SEGMENTS = {0xE0: 16, 0xEE: 14}
"""JFIF without a thumbnail, and Adobe's word on colours: of one length, without room for more."""


@dataclass(frozen=True, slots=True)
class Anonymised:
    """What came of it.

    Args:
        out: The copy.
        episodes: Episodes and searches in it.
        images: Images in it.
        left_out: Images that are no bare JPEG, or not what their name says.
    """

    out: Path
    episodes: int
    images: int
    left_out: int


def anonymise_run(run: Path, out: Path, *, images: bool = True) -> Anonymised:
    """Write a copy of a run folder without names; it appears whole or not at all.

    Not copied: scores of tiles, and whatever else lies in the folder.

    Args:
        run: The run folder; it stays as it is.
        out: The copy: a folder that does not exist yet, or is empty.
        images: Whether the images come along.

    Raises:
        RecordError: If the run folder is not one, or is damaged.
        ConfigError: If the copy cannot be written there.
    """
    if not run.is_dir():
        raise RecordError(f"{run} is not a folder; expected a run folder")
    home = RunFolder(run)
    description, results = home.description(), dict(_results(home))
    check_copy(run, out)
    names = names_of(description, results.values())
    place = out.absolute()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))  # for the user alone
    except OSError as error:
        raise ConfigError(f"the copy {out} cannot be made: {error.strerror or error}") from error
    try:
        write_json_atomic(scratch / "run.json", described(description, names))
        _copy_episodes(home, scratch, names, results)
        copied, left_out = _copy_images(home.images, scratch / "images") if images else (0, 0)
        _publish(scratch, place)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Anonymised(out, len(results), copied, left_out)


def check_copy(run: Path, out: Path, option: str = "--out") -> None:
    """Refuse a place for the copy that is not free, or inside of what is copied.

    Args:
        run: The run folder, which may not exist yet.
        out: The copy.
        option: Which option names it.

    Raises:
        ConfigError: If it cannot be written there.
    """
    try:
        is_free = not out.exists() or (out.is_dir() and not any(out.iterdir()))
    except OSError as error:
        raise ConfigError(f"the copy {out} cannot be made: {error.strerror or error}") from error
    if not is_free:
        raise ConfigError(f"the copy {out} exists and is not an empty folder; name another {option}")
    if run.resolve() in (out.resolve(), *out.resolve().parents):
        raise ConfigError(f"the copy {out} lies inside of the run folder {run}; name another {option}")


def _results(home: RunFolder) -> Iterator[tuple[str, JsonObject]]:
    """Yield the results of a run by key."""
    for path in sorted((home.path / "episodes").glob(f"*/{RESULT_FILE}")):
        try:
            yield path.parent.name, read_json(path, RESULT_FORMAT)
        except RecordError:
            yield path.parent.name, read_json(path, EXPLORATION_FORMAT)


def _copy_episodes(home: RunFolder, out: Path, names: Names, results: dict[str, JsonObject]) -> None:
    (out / "episodes").mkdir(mode=0o700)
    for key, result in results.items():
        place = out / "episodes" / key
        place.mkdir(mode=0o700)
        write_json_atomic(place / RESULT_FILE, names.json(_named_by_fingerprint(result)))
        events = home.episode(key) / EVENTS_FILE
        if events.exists():
            lines = (names.line(event) for event in read_events(events))
            write_bytes_atomic(place / EVENTS_FILE, "".join(lines).encode())


def _named_by_fingerprint(result: JsonObject) -> JsonObject:
    """Return a result whose slide is called by its fingerprint, whatever its path looks like."""
    return {**result, "slide": {**result["slide"], "path": result["slide"]["fingerprint"]}}


def _copy_images(images: ImageStore, place: Path) -> tuple[int, int]:
    """Copy the bare JPEGs of a run; return how many there are, and how many were left out."""
    copied = left_out = 0
    for path in sorted(images.folder.glob("*")):
        jpeg = _bare_jpeg(images, path)
        if jpeg is None:
            left_out += 1
            continue
        place.mkdir(mode=0o700, exist_ok=True)
        write_bytes_atomic(place / path.name, jpeg, durable=False)
        copied += 1
    return copied, left_out


def _bare_jpeg(images: ImageStore, path: Path) -> bytes | None:
    """Return the bytes of an image, None where it is something else than what its name says, or more than a picture."""
    if path.suffix != ".jpg" or not _SHA256.fullmatch(path.stem):
        return None
    try:
        jpeg = images.load(path.stem)
    except RecordError:
        return None
    return jpeg if _is_bare(jpeg) else None


def _is_bare(jpeg: bytes) -> bool:
    """Return whether a JPEG holds nothing but one picture: no EXIF, profile or comment, and nothing behind its end."""
    place = 2
    if not (jpeg.startswith(b"\xff\xd8\xff") and jpeg.endswith(b"\xff\xd9")):
        return False
    while place + 4 <= len(jpeg) and jpeg[place] == 0xFF:
        marker, length = jpeg[place + 1], int.from_bytes(jpeg[place + 2 : place + 4], "big")
        if marker not in _BARE_SEGMENTS and _FIXED_SEGMENTS.get(marker) != length:
            return False
        place += 2 + length
        if marker == _SCAN:  # the scan: a second 0xFF 0xD9 would end the picture before the end of the file
            return jpeg.find(b"\xff\xd9", place) == len(jpeg) - 2
    return False


def _publish(scratch: Path, place: Path) -> None:
    """Give the finished copy its name; an empty folder in its place gives way."""
    try:
        if place.exists():
            place.rmdir()
        scratch.rename(place)
    except OSError as error:
        raise ConfigError(f"the copy {place} cannot be made: {error.strerror or error}") from error
