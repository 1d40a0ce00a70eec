"""Check the installation: Python, libraries, slide readers, room on disk, memory, the environment's settings."""

import importlib.metadata
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathnav import __version__
from pathnav.errors import ConfigError, PathnavError
from pathnav.model.probe_finding import Finding, Result
from pathnav.model.settings import refuse_tracing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OLDEST_PYTHON = (3, 11)
LEAST_FREE_GB, LEAST_MEMORY_GB = 1.0, 2.0
MOST_OFF = {"adobe_deflate": 0, "jpeg": 12}
"""Grey levels that a reader may differ from what was written, by compression; JPEG loses some."""
_GB = 1e9
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def check_installation(run_folder: Path, environ: Mapping[str, str]) -> list[Finding]:
    """Return what was found, in order; a finding that is `no` stops runs.

    Args:
        run_folder: Where runs are written by default; need not exist.
        environ: The environment, `os.environ`.
    """
    return [
        _python(),
        _libraries(),
        *_readers(),
        _disk("disk_runs", f"the run folder {run_folder}", run_folder),
        _disk("disk_temp", f"the temporary folder {tempfile.gettempdir()}", Path(tempfile.gettempdir())),
        _machine(),
        _environment(environ),
    ]


def _python() -> Finding:
    version = platform.python_version()
    facts = {"python": version, "pathnav": __version__, "platform": platform.platform()}
    if sys.version_info >= OLDEST_PYTHON:
        return Finding("python", Result.YES, f"Python {version}, pathnav {__version__}", facts=facts)
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return Finding("python", Result.NO, f"Python {version} is too old", "", f"use Python {oldest} or newer", facts)


def _required() -> Iterator[str]:
    """Yield the names of the libraries that pathnav itself needs, without those of its extras."""
    for line in importlib.metadata.requires("pathnav") or ():
        name = _NAME.match(line)
        if name and "extra ==" not in line:
            yield name.group()


def _libraries() -> Finding:
    try:
        names = sorted(set(_required()))
    except importlib.metadata.PackageNotFoundError:
        seen = "pathnav is not installed, so what it needs is not known"
        return Finding("libraries", Result.NO, seen, "its agents and tools are not found", "pip install -e .")
    versions: dict[str, str | None] = {}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    missing = [name for name, version in versions.items() if version is None]
    facts: dict[str, Any] = {"versions": versions}
    if missing:
        change = f"pip install {' '.join(missing)}"
        return Finding("libraries", Result.NO, f"not installed: {', '.join(missing)}", "", change, facts)
    seen = ", ".join(f"{name} {version}" for name, version in versions.items())
    return Finding("libraries", Result.YES, seen, facts=facts)


def _readers() -> Iterator[Finding]:
    """Yield how each slide library reads a small slide that is written for the purpose."""
    try:
        from pathnav.slide.openslide_reader import library_version

        name = f"OpenSlide {library_version()}"
        with tempfile.TemporaryDirectory(prefix="pathnav-doctor-") as folder:
            slides = {kind: _write_slide(Path(folder) / f"{kind}.tif", kind) for kind in MOST_OFF}
            yield _reader("openslide", name, slides, {"library": library_version()})
            yield _reader("tiffslide", "TiffSlide", slides, {})
    except (ImportError, OSError, ValueError, KeyError) as error:
        yield Finding("readers", Result.NO, f"the slide libraries cannot be used: {error}", "no slide can be read")


def _reader(reader: str, name: str, slides: dict[str, Path], facts: dict[str, Any]) -> Finding:
    faults = {}
    for kind, path in slides.items():
        try:
            facts[kind] = _grey_levels_off(path, reader)
        except (PathnavError, ImportError, OSError) as error:
            facts[kind], faults[kind] = None, str(error)
        else:
            if facts[kind] > MOST_OFF[kind]:
                faults[kind] = f"{facts[kind]} grey levels off"
    if faults:
        seen = f"{name} does not read a slide that was just written: " + "; ".join(
            f"{kind}: {fault}" for kind, fault in faults.items()
        )
        change = "install pathnav's libraries anew, in an environment of their own"
        return Finding(f"reader_{reader}", Result.NO, seen, "what it reads cannot be trusted", change, facts)
    seen = f"{name} reads a slide that was just written, pixel by pixel ({', '.join(slides)})"
    return Finding(f"reader_{reader}", Result.YES, seen, facts=facts)


def _gradients() -> "NDArray[np.uint8]":
    """Return pixels that tell their place, smooth enough for JPEG; uint8 RGB, shape (512, 512, 3)."""
    import numpy as np

    across, down = np.meshgrid(*(np.linspace(20, 235, 512),) * 2)
    return np.stack([across, down, (across + down) / 2], axis=-1).astype(np.uint8)


def _write_slide(path: Path, compression: str) -> Path:
    """Write a tiled TIFF of two levels; return its path."""
    import tifffile

    options: dict[str, Any] = {"tile": (128, 128), "photometric": "rgb", "compression": compression}
    with tifffile.TiffWriter(path) as file:
        file.write(_gradients(), **options)
        file.write(_gradients()[::2, ::2], subfiletype=1, **options)
    return path


def _grey_levels_off(path: Path, reader: str) -> int:
    """Return the largest difference between what a reader shows and what was written."""
    from pathnav.geometry import Box
    from pathnav.slide import open_slide

    with open_slide(path, mpp=0.5, reader=reader) as slide:
        shown = slide.read(Box(0, 0, slide.width, slide.height), max_side_px=512)
    return int(abs(shown.astype(int) - _gradients()).max())


def _disk(probe: str, what: str, folder: Path) -> Finding:
    there = next((place for place in (folder.absolute(), *folder.absolute().parents) if place.is_dir()), Path("/"))
    try:
        free_gb = shutil.disk_usage(there).free / _GB
    except OSError as error:
        return Finding(probe, Result.UNDECIDED, f"the room in {what} is not known: {error}")
    facts = {"folder": str(there), "free_gb": round(free_gb, 2), "writable": os.access(there, os.W_OK)}
    seen = f"{free_gb:.1f} GB are free in {what}"
    if not facts["writable"]:
        change = "name another folder (--out DIR; TMPDIR)"
        return Finding(probe, Result.NO, f"{what} cannot be written", "nothing can be kept there", change, facts)
    if free_gb < LEAST_FREE_GB:
        means = "an episode keeps about 3 MB of images; a run of hundreds will not fit"
        return Finding(probe, Result.NO, seen, means, "make room, or name another folder (--out DIR; TMPDIR)", facts)
    return Finding(probe, Result.YES, seen, facts=facts)


def _machine() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory_gb = _memory_gb()
    facts = {"cores": cores, "memory_gb": None if memory_gb is None else round(memory_gb, 1)}
    memory = "memory unknown" if memory_gb is None else f"{memory_gb:.1f} GB of memory"
    seen = f"{cores} core{'s' if cores > 1 else ''}, {memory}"
    if memory_gb is not None and memory_gb < LEAST_MEMORY_GB:
        means = "large regions and many workers may not fit"
        return Finding("machine", Result.PARTLY, seen, means, "run with one worker", facts)
    return Finding("machine", Result.YES, seen, facts=facts)


def _memory_gb() -> float | None:
    """Return the memory of the machine, None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GB
    except (AttributeError, ValueError, OSError):
        return None


def _environment(environ: Mapping[str, str]) -> Finding:
    try:
        refuse_tracing(environ)
    except ConfigError as error:
        return Finding("environment", Result.NO, str(error), "no model is asked while it is set", "unset it")
    return Finding("environment", Result.YES, "no variable sends prompts or pixels to a tracing service")
