"""What is asked: queries and diagnostic trees, scenario files, samples and controls, tumour annotations.

scenario = load_scenario("mode-a-base", cohort="cohort.yaml")
for case in cases(scenario, scenario.cohort.slides):
    print(case.id, case.query.finding)
"""

from pathnav.cohort.annotations import Annotation, describe_annotation, load_annotation, overlap_fractions
from pathnav.cohort.case import Case, cases
from pathnav.cohort.query import Query, Target, query_of_user, slide_handle
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
