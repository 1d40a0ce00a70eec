"""What `run.json` says: what was asked, of whom, with which software on which machine."""

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pathnav import __version__
from pathnav.records import JsonObject

RUN_FORMAT = "pathnav-run-1"
_REQUESTS = ({"locate"}, {"explore"})
"""What the `scenario` of a single request holds: the request, under the name of its command."""

_RECORDED_PACKAGES = (
    *("openslide-python", "openslide-bin", "tiffslide", "tifffile", "imagecodecs", "scikit-image", "numpy", "pillow"),
    *("langgraph", "httpx"),
)


def describe_run(
    name: str,
    scenario: Mapping[str, Any],
    *,
    seed: int,
    episodes: Sequence[str],
    started: str,
    cases: Sequence[Mapping[str, Any]] = (),
    sample: Sequence[Mapping[str, Any]] = (),
    explorations: Sequence[Mapping[str, Any]] = (),
) -> JsonObject:
    """Return what `run.json` says.

    Args:
        name: What the run is called.
        scenario: The scenario as resolved, or the arguments of a single episode.
        seed: The scenario's seed.
        episodes: The keys of all planned episodes, in order.
        started: ISO time.
        cases: The questions, with their targets.
        sample: The slides that were drawn, each with the nodes that were drawn on it.
        explorations: The searches of Mode B, with where the truth lies.
    """
    return {
        "format": RUN_FORMAT,
        "name": name,
        "started": started,
        "seed": seed,
        "scenario": dict(scenario),
        "versions": _versions(),
        "machine": _machine(),
        "sample": [dict(one) for one in sample],
        "cases": [dict(case) for case in cases],
        "explorations": [dict(one) for one in explorations],
        "episodes": list(episodes),
        "earlier_episodes": [],
    }


def _machine() -> JsonObject:
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cpus": os.cpu_count(),
        "python": sys.version.split()[0],
    }


def _versions() -> dict[str, str | None]:
    """Return the versions of what can change a pixel or a request."""
    versions: dict[str, str | None] = {"pathnav": __version__}
    for package in _RECORDED_PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return versions


def is_of_requests(description: Mapping[str, Any]) -> bool:
    """Return whether single requests, and no scenario, were all that was ever run into a folder."""
    asked = [one.get("scenario") for one in (description, *description.get("earlier", ()))]
    return all(isinstance(one, Mapping) and set(one) in _REQUESTS for one in asked)


def continued(before: JsonObject | None, after: Mapping[str, Any]) -> JsonObject:
    """Return the description of a folder that is run into again.

    `episodes` are the keys of the latest plan, `earlier_episodes` those of earlier plans that are not in it.
    """
    if before is None:
        return dict(after)
    apart = ("started", "episodes", "earlier_episodes", "earlier")
    latest = list(after["episodes"])
    known = dict.fromkeys([*before.get("earlier_episodes", []), *before["episodes"]])
    keys = {"episodes": latest, "earlier_episodes": [key for key in known if key not in set(latest)]}
    if all(before.get(field) == after.get(field) for field in {*before, *after} - {*apart}):
        return {**before, **keys}
    left_out = ("format", "episodes", "earlier_episodes", "earlier", "cases", "explorations")
    earlier = {field: value for field, value in before.items() if field not in left_out}
    return {**after, **keys, "earlier": [*before.get("earlier", []), earlier]}
