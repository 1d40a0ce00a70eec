"""Which pixels a slide's scores rest on: two readers decode a JPEG to slightly different ones."""

import contextlib
import dataclasses
from typing import TYPE_CHECKING

from pathnav.errors import SlideError
from pathnav.run.case import SlideSource

if TYPE_CHECKING:
    from pathnav.explore import ScorerConfiguration

SLIDE_READER = "slide reader"
"""In the name of scores whose tiles another reader read than the one that opens the slide unasked."""


def named_by_reader(configuration: "ScorerConfiguration", source: SlideSource) -> "ScorerConfiguration":
    """Return what names scores in a store, with the reader where the user insists on an unusual one.

    So the scores of older stores, which do not name a reader, stay those of the usual one.

    Args:
        configuration: Of the scorer.
        source: How the slide is opened.
    """
    if source.reader is None:
        return configuration
    with contextlib.suppress(SlideError), contextlib.closing(dataclasses.replace(source, reader=None).open()) as usual:
        if usual.reader == source.reader:
            return configuration
    return dataclasses.replace(configuration, settings={**configuration.settings, SLIDE_READER: source.reader})


def without_reader(configuration: "ScorerConfiguration") -> "tuple[ScorerConfiguration, str | None]":
    """Return a configuration as the scorer declares it, and the unusual reader that it names, if any."""
    settings = dict(configuration.settings)
    reader = settings.pop(SLIDE_READER, None)
    return dataclasses.replace(configuration, settings=settings), reader
