"""Phantom slides of scenarios: made once, kept whole."""

from pathlib import Path

import pytest

from pathnav.cohort.case import cases
from pathnav.cohort.scenario import PhantomsSpec
from pathnav.cohort.scenario_file import make_scenario
from pathnav.run.phantoms import cache_folder, phantom_slides, scenario_slides

ONE = PhantomsSpec(count=1, side=1024, seed=1)


def test_a_phantom_is_made_once_and_again_the_same_where_a_file_of_it_is_missing(tmp_path: Path) -> None:
    told: list[str] = []
    (slide,) = phantom_slides(ONE, tmp_path, told.append)
    path = Path(slide.path)
    assert told == [f"making phantom slide 1 of 1 (1,024 px, kept in {path.parent})"]
    kept = {file: file.read_bytes() for file in path.parent.iterdir()}
    assert {slide.path, slide.tree, slide.annotation} == {str(file) for file in kept}
    assert slide.organ == "phantom"
    assert phantom_slides(ONE, tmp_path, told.append) == (slide,)
    assert len(told) == 1
    for file in kept:
        file.unlink()
        phantom_slides(ONE, tmp_path, told.append)
        assert {file: file.read_bytes() for file in path.parent.iterdir()} == kept
    assert len(told) == 4


def test_the_cache_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    monkeypatch.delenv("PATHNAV_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path("/home/u/.cache/pathnav")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/pathnav")
    monkeypatch.setenv("PATHNAV_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path


def test_a_scenario_of_phantoms_has_cases_that_fit_their_slides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATHNAV_CACHE", str(tmp_path))
    cohort = {"phantoms": {"count": 1, "side": 2048, "seed": 3}, "sample": {"queries_per_magnification": 1}}
    scenario = make_scenario({"format": "pathnav-scenario-1", "cohort": cohort, "localise": {"agents": ["random"]}})
    found = cases(scenario, scenario_slides(scenario))
    assert [case.query.magnification for case in found] == [2.5, 10, 40]
    assert {case.slide_name for case in found} == {"phantom-3.tiff"}
    assert all(case.query.organ == "phantom" for case in found)
