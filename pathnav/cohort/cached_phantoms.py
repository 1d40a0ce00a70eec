"""Phantom slides that scenarios ask for: made once, kept in the user's cache folder."""

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pathnav.cohort.phantom import GENERATOR_VERSION, make_phantom
from pathnav.cohort.scenario import PhantomsSpec, SlideSpec

logger = logging.getLogger(__name__)

CACHE_FORMAT = "pathnav-phantom-cache-1"
_COMPLETE = "complete.json"


def cache_folder() -> Path:
    """Return the folder for what can be made again: `PATHNAV_CACHE`, else `pathnav` in the XDG cache folder."""
    own = os.environ.get("PATHNAV_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    xdg = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification tells programs to ignore a relative path.
    base = Path(xdg) if xdg and Path(xdg).is_absolute() else Path.home() / ".cache"
    return base / "pathnav"


def phantom_slides(
    spec: PhantomsSpec, folder: Path | None = None, notify: Callable[[str], None] = logger.info
) -> tuple[SlideSpec, ...]:
    """Return the phantom slides of a scenario, making those that are not there or not whole.

    Args:
        spec: How many, how large, which seed.
        folder: Where they are kept; None is the user's cache folder.
        notify: Is told, in one line, when a slide is about to be made: it takes seconds.
    """
    home = (folder or cache_folder()) / "phantoms"
    slides = []
    for number in range(spec.count):
        place = home / f"generator{GENERATOR_VERSION}-side{spec.side}-seed{spec.seed + number}"
        if not _is_complete(place):
            notify(f"making phantom slide {number + 1} of {spec.count} ({spec.side:,} px, kept in {place})")
            _make(place, spec.seed + number, spec.side)
        slides.append(_slide(place))
    return tuple(slides)


def _slide(place: Path) -> SlideSpec:
    files = _manifest(place)["names"]
    return SlideSpec(
        path=str(place / files["slide"]),
        organ="phantom",
        tree=str(place / files["tree"]),
        annotation=str(place / files["annotation"]),
        tumour_classes=("tumor",),
    )


def _make(place: Path, seed: int, side: int) -> None:
    """Make a phantom beside its place and move it there in one step: a run that is killed leaves no half of it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".making-") as scratch:
        made = Path(scratch) / "phantom"
        made.mkdir()
        files = make_phantom(made / f"phantom-{seed}.tiff", seed=seed, side=side)
        paths = {what: Path(getattr(files, what)) for what in ("slide", "annotation", "tree")}
        manifest = {
            "format": CACHE_FORMAT,
            "names": {what: path.name for what, path in paths.items()},
            "bytes": {path.name: path.stat().st_size for path in paths.values()},
        }
        (made / _COMPLETE).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        _move(made, place)


def _move(made: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    try:
        made.replace(place)
    except OSError:
        # Another process was faster; both made the same files.
        if not _is_complete(place):
            raise


def _manifest(place: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((place / _COMPLETE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) and manifest.get("format") == CACHE_FORMAT else {}


def _is_complete(place: Path) -> bool:
    sizes = _manifest(place).get("bytes")
    if not sizes:
        return False
    return all((place / name).is_file() and (place / name).stat().st_size == size for name, size in sizes.items())
