"""Phantom slides: procedural H&E-like slides with their truth, for demonstrations and tests without a network.

What is drawn where is decided in `phantom_layout`, filled in `phantom_scene`, rendered in `phantom_render` and
written in `phantom_pyramid`; `phantom_tree` and `phantom_annotation` state the truth.
"""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pathnav.errors import ConfigError, SlideError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pathnav.cohort.phantom_scene import Scene

GENERATOR_VERSION = 1  # goes up whenever the same seed gives other pixels
MPP_UM = 0.25
LEAST_SIDE_PX = 1024
LARGEST_SIDE_PX = 32_768  # the maps in memory take 0.5 GB there
_MOST_THREADS = 4


@dataclass(frozen=True, slots=True)
class PhantomFiles:
    """The three files of a phantom.

    Args:
        slide: The pyramidal TIFF.
        annotation: Its regions as QuPath GeoJSON, the tumour with the class `tumor`.
        tree: Its diagnostic tree, `pathnav-tree-1`.
    """

    slide: Path
    annotation: Path
    tree: Path


def make_phantom(
    path: str | Path, *, seed: int = 0, side: int = 8192, pen: bool = False, threads: int | None = None
) -> PhantomFiles:
    """Draw a phantom slide and write it with its annotation and its diagnostic tree.

    The same seed, side and pen give the same bytes, whatever the number of threads. The files appear under their
    names only when all are complete.

    Args:
        path: The slide to write, `NAME.tif` or `NAME.tiff`; `NAME.geojson` and `NAME.tree.json` go beside it.
        seed: Which phantom, 0 or more.
        side: Width and height in level-0 pixels of 0.25 um, 1,024 to 32,768.
        pen: Whether a pen mark is drawn on the glass.
        threads: Blocks rendered at a time; None for one a core, at most 4.

    Raises:
        ConfigError: If the path, the seed or the side is not usable; then nothing is written.
    """
    files = phantom_files(path)
    _check(files, seed, side)
    from pathnav.cohort.phantom_annotation import annotation_document
    from pathnav.cohort.phantom_palette import streams
    from pathnav.cohort.phantom_scene import compose
    from pathnav.cohort.phantom_tree import grow_tree, tree_document

    seed, side = int(seed), int(side)
    rng = streams(seed, side)
    scene = compose(rng, side, pen=pen)
    tree = tree_document(grow_tree(rng("tree"), scene), files.slide.name, MPP_UM)
    with _growing(files) as parts:
        parts.annotation.write_text(json.dumps(annotation_document(scene.layout)) + "\n", encoding="utf-8")
        parts.tree.write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
        _write_slide(parts.slide, scene, seed, pen, threads or min(_MOST_THREADS, os.cpu_count() or 1))
    return files


def phantom_files(path: str | Path) -> PhantomFiles:
    """Return the names of a phantom's three files for the name of its slide.

    Raises:
        ConfigError: If the path names no file.
    """
    slide = Path(path)
    if not slide.name:
        raise ConfigError(f"a phantom needs a file name such as demo.tiff, got {str(path)!r}")
    return PhantomFiles(slide, slide.with_suffix(".geojson"), slide.with_suffix(".tree.json"))


def _check(files: PhantomFiles, seed: int, side: int) -> None:
    """Refuse what cannot be drawn, before anything is written."""
    slide = files.slide
    if slide.suffix.lower() not in (".tif", ".tiff"):
        raise ConfigError(f"a phantom is a TIFF file: its name must end in .tif or .tiff, got {str(slide)!r}")
    if not _is_whole(seed) or seed < 0:
        raise ConfigError(f"seed must be a whole number of 0 or more, got {seed!r}")
    if not _is_whole(side) or not LEAST_SIDE_PX <= side <= LARGEST_SIDE_PX:
        raise ConfigError(
            f"side must be a whole number of pixels in [{LEAST_SIDE_PX}, {LARGEST_SIDE_PX}], got {side!r}"
        )
    if not slide.parent.is_dir():
        raise ConfigError(f"the folder {str(slide.parent)!r} for the phantom does not exist; create it first")
    for place in (files.slide, files.annotation, files.tree):
        if place.is_dir():
            raise ConfigError(f"{str(place)!r} is a folder; a phantom writes a file of that name")
        if place.exists() and not _is_phantom(slide):
            raise ConfigError(f"{str(place)!r} exists and is no phantom's: name another file, or move that one away")


def _is_phantom(slide: Path) -> bool:
    """Return whether a file is a phantom slide, which a phantom may replace with its truth."""
    from pathnav.slide import open_slide

    try:
        with open_slide(slide) as opened:
            return opened.is_phantom
    except SlideError:
        return False


def _is_whole(number: object) -> bool:
    """Return whether something is a whole number, also one that came as 4096.0; NaN and infinity are not."""
    return isinstance(number, int | float) and not isinstance(number, bool) and number % 1 == 0


@contextmanager
def _growing(files: PhantomFiles) -> Iterator[PhantomFiles]:
    """Give names under which the files may grow; they get their own names at the end, or vanish.

    Raises:
        ConfigError: If the folder cannot be written to.
    """
    mark = f"{os.getpid()}-{secrets.token_hex(4)}.part"
    places = (files.annotation, files.tree, files.slide)  # the slide last: whoever finds it finds its truth too
    parts = [place.with_name(f".{place.name}.{mark}") for place in places]
    try:
        yield PhantomFiles(slide=parts[2], annotation=parts[0], tree=parts[1])
        for part, place in zip(parts, places, strict=True):
            part.replace(place)
    except OSError as error:
        raise ConfigError(f"the phantom {str(files.slide)!r} cannot be written: {error.strerror or error}") from error
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _write_slide(path: Path, scene: "Scene", seed: int, pen: bool, threads: int) -> None:
    from pathnav.cohort.phantom_pyramid import PyramidText, write_pyramid
    from pathnav.cohort.phantom_render import render

    side = scene.layout.side
    text = (
        f"pathnav phantom: synthetic image, no tissue and no patient; seed={seed} side={side} "
        f"pen={'yes' if pen else 'no'} mpp={MPP_UM} generator={GENERATOR_VERSION}"
    )

    def window(x: int, y: int, width: int, height: int) -> "NDArray[np.uint8]":
        return render(scene, x, y, width, height)

    write_pyramid(path, side, window, PyramidText(text, "pathnav", MPP_UM), threads)
