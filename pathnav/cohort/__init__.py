"""What is asked: queries and diagnostic trees, scenario files, samples and controls, tumour annotations.

scenario = load_scenario("mode-a-base", cohort="cohort.yaml")
for case in cases(scenario, scenario.cohort.slides):
    print(case.id, case.query.finding)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathnav.cohort.annotation import Annotation, describe_annotation, load_annotation
    from pathnav.cohort.annotation_overlap import overlap_fractions
    from pathnav.cohort.case import Case, cases
    from pathnav.cohort.posing import query_of_user
    from pathnav.cohort.query import Query, Target, slide_handle
    from pathnav.cohort.scenario import Scenario
    from pathnav.cohort.scenario_file import load_scenario, make_scenario, shipped_scenarios
    from pathnav.cohort.tree import Tree, load_tree

__all__ = [
    "Annotation",
    "Case",
    "Query",
    "Scenario",
    "Target",
    "Tree",
    "cases",
    "describe_annotation",
    "load_annotation",
    "load_scenario",
    "load_tree",
    "make_scenario",
    "overlap_fractions",
    "query_of_user",
    "shipped_scenarios",
    "slide_handle",
]

_HOMES = {
    "Annotation": "annotation",
    "Case": "case",
    "Query": "query",
    "Scenario": "scenario",
    "Target": "query",
    "Tree": "tree",
    "cases": "case",
    "describe_annotation": "annotation",
    "load_annotation": "annotation",
    "load_scenario": "scenario_file",
    "load_tree": "tree",
    "make_scenario": "scenario_file",
    "overlap_fractions": "annotation_overlap",
    "query_of_user": "posing",
    "shipped_scenarios": "scenario_file",
    "slide_handle": "query",
}


def __getattr__(name: str) -> Any:
    """Import an exported name when it is first used: pydantic and numpy take 0.3 s together."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
