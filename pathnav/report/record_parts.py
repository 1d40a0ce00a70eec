"""What the records of both modes have in common, as a report reads them; None is unknown or not applicable, never 0."""

import re

from pydantic import BaseModel, ConfigDict

BoxList = tuple[float, float, float, float]

_PATHNAVS = re.compile(r"(?!.*\.py$)(pathnav \d\S*|pathnav(_baselines)?(\.\w+)+)")
"""Origins of pathnav's own plug-ins: the installed distribution with its version, or one of its modules; not a file."""


class Record(BaseModel):
    """A part of a result; one has more fields than a table needs, and may gain some within its format."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class SlideRecord(Record):
    """Which slide an episode was about."""

    path: str
    fingerprint: str
    """The slide's identity: the unit of resampling."""
    phantom: bool = False
    mpp_um: tuple[float, float] | None = None
    reader: str | None = None


class Tokens(Record):
    """Tokens that a model read and wrote."""

    input: int | None = None
    output: int | None = None


def is_pathnavs(origin: str | None) -> bool:
    """Return whether a plug-in of this origin comes with pathnav."""
    return origin is not None and bool(_PATHNAVS.fullmatch(origin))
