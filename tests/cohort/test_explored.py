"""Which slides a scenario explores, and what is said of those that are too few."""

import logging
from pathlib import Path

import pytest

from pathnav.cohort.explored import explored_slides
from pathnav.cohort.scenario_file import make_scenario


@pytest.mark.parametrize(
    ("free", "says"), [(1, "has 3 with annotations and 1 tumour_free"), (0, "has 3 with annotations")]
)
def test_a_sample_that_is_too_large_is_told_how_many_there_are_of_each_kind(
    free: int, says: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    annotated = [{"path": f"{name}.svs", "annotation": f"{name}.geojson"} for name in "abc"]
    slides = [*annotated, *[{"path": "d.svs", "tumour_free": True}] * free, {"path": "e.svs"}]
    scenario = make_scenario(
        {
            "format": "pathnav-scenario-1",
            "cohort": {"slides": slides, "sample": {"slides": 20}},
            "explore": {"scorers": ["random"]},
        },
        folder=tmp_path,
    )
    with caplog.at_level(logging.WARNING):
        assert len(explored_slides(scenario, scenario.cohort.slides or ())) == 3 + free
    assert f"the sample asks for 20 slides, the cohort {says}" in [record.getMessage() for record in caplog.records]
