"""Phantom slides that scenarios ask for: made once, kept in the user's cache folder."""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from pathnav.cohort.scenario import PhantomsSpec, Scenario, SlideSpec
from pathnav.errors import ConfigError
from pathnav.phantom import make_phantom, phantom_files
from pathnav.phantom.files import GENERATOR_VERSION

logger = logging.getLogger(__name__)


def scenario_slides(scenario: Scenario, notify: Callable[[str], None] = logger.info) -> Sequence[SlideSpec]:
    """Return the slides of a scenario's cohort; its phantoms are made where they are not in the cache.

    Args:
        scenario: The scenario.
        notify: Is told, in one line, when a slide is about to be made: it takes seconds.

    Raises:
        ConfigError: If a phantom cannot be written.
    """
    phantoms = scenario.cohort.phantoms
    return phantom_slides(phantoms, notify=notify) if phantoms else scenario.cohort.slides or ()


def phantom_slides(
    spec: PhantomsSpec, folder: Path | None = None, notify: Callable[[str], None] = logger.info
) -> tuple[SlideSpec, ...]:
    """Return phantom slides, making those that are not there; `folder` is where they are kept, else the cache."""
    home = (folder or cache_folder()) / "phantoms"
    slides = []
    for number in range(spec.count):
        seed = spec.seed + number
        place = home / f"generator{GENERATOR_VERSION}-side{spec.side}-seed{seed}"
        files = phantom_files(place / f"phantom-{seed}.tiff")
        if not (files.slide.is_file() and files.annotation.is_file() and files.tree.is_file()):
            notify(f"making phantom slide {number + 1} of {spec.count} ({spec.side:,} px, kept in {place})")
            try:
                place.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigError(f"the cache folder {place} cannot be made: {error.strerror or error}") from error
            make_phantom(files.slide, seed=seed, side=spec.side, force=True)
        path, tree, annotation = str(files.slide), str(files.tree), str(files.annotation)
        slides.append(
            SlideSpec(path=path, organ="phantom", tree=tree, annotation=annotation, tumour_classes=("tumor",))
        )
    return tuple(slides)


def cache_folder() -> Path:
    """Return the folder for what can be made again: `PATHNAV_CACHE`, else `pathnav` in the XDG cache folder."""
    own = os.environ.get("PATHNAV_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    xdg = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification tells programs to ignore a relative path.
    base = Path(xdg) if xdg and Path(xdg).is_absolute() else Path.home() / ".cache"
    return base / "pathnav"
