"""Which pixels a slide's scores rest on: those of a reader, at a scale.

Two readers decode a JPEG to slightly different pixels. The scale sets how large a tile is, and at the slide's edge,
where tiles are cut, the box alone does not tell: the same box can be another part of an image.
"""

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pathnav.errors import SlideError
from pathnav.run.case import SlideSource

if TYPE_CHECKING:
    from pathnav.explore import ScorerConfiguration

READER, SCALE = "slide reader", "slide mpp_um"
"""In the name of scores whose tiles another reader read, or at another scale, than where the user says nothing."""


def named_by_pixels(
    configuration: "ScorerConfiguration", source: SlideSource, mpp_um: Sequence[float]
) -> "ScorerConfiguration":
    """Return what names scores in a store, with reader and scale where the user insists on unusual ones.

    So the scores of older stores, which name neither, stay those of the usual ones.

    Args:
        configuration: Of the scorer.
        source: How the slide is opened.
        mpp_um: Its scale then (x, y), um per level-0 pixel.
    """
    if source.reader is None and source.mpp is None and source.objective_power is None:
        return configuration
    plain = dataclasses.replace(source, reader=None, mpp=None, objective_power=None)
    insisted: dict[str, Any] = {SCALE: list(mpp_um)}
    if source.reader is not None:
        insisted[READER] = source.reader
    with contextlib.suppress(SlideError), contextlib.closing(plain.open()) as usual:
        if usual.reader == source.reader:
            del insisted[READER]
        if usual.has_mpp and list(usual.mpp_um) == list(mpp_um):
            del insisted[SCALE]
    return dataclasses.replace(configuration, settings={**configuration.settings, **insisted})


def without_pixels(
    configuration: "ScorerConfiguration",
) -> "tuple[ScorerConfiguration, str | None, list[float] | None]":
    """Return a configuration as the scorer declares it, and the unusual reader and scale that it names, if any."""
    settings = dict(configuration.settings)
    reader, scale = settings.pop(READER, None), settings.pop(SCALE, None)
    return dataclasses.replace(configuration, settings=settings), reader, scale
