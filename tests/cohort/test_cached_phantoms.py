"""Phantom slides of scenarios: made once, kept whole."""

import shutil
from pathlib import Path

import pytest

from pathnav.cohort.cached_phantoms import cache_folder, phantom_slides
from pathnav.cohort.case import cases
from pathnav.cohort.scenario import PhantomsSpec
from pathnav.cohort.scenario_file import make_scenario
from pathnav.run.scenario_plan import scenario_slides

ONE = PhantomsSpec(count=1, side=1024, seed=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache with one phantom; to be copied by tests that spoil it."""
    folder = tmp_path_factory.mktemp("cache")
    phantom_slides(ONE, folder)
    return folder


def test_a_phantom_that_is_there_is_not_made_again(made: Path) -> None:
    told: list[str] = []
    (slide,) = phantom_slides(ONE, made, told.append)
    assert told == []
    assert slide.organ == "phantom"
    assert all(Path(str(path)).is_file() for path in (slide.path, slide.tree, slide.annotation))


def test_a_phantom_that_was_cut_short_is_made_again_the_same(made: Path, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(made, tmp_path / "cache"))
    path = Path(phantom_slides(ONE, cache)[0].path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    told: list[str] = []
    phantom_slides(ONE, cache, told.append)
    assert path.read_bytes() == whole
    assert told == [f"making phantom slide 1 of 1 (1,024 px, kept in {path.parent})"]
    assert list((cache / "phantoms").iterdir()) == [path.parent], "nothing half made is left"


class WouldMake(Exception):
    """Raised instead of making a phantom."""


@pytest.mark.parametrize("name", ["phantom-1.tiff", "phantom-1.tree.json", "phantom-1.geojson", "complete.json"])
def test_a_phantom_with_a_file_missing_is_not_whole(name: str, made: Path, tmp_path: Path) -> None:
    def stop(line: str) -> None:
        raise WouldMake(line)

    cache = Path(shutil.copytree(made, tmp_path / "cache"))
    Path(phantom_slides(ONE, cache, stop)[0].path).with_name(name).unlink()
    with pytest.raises(WouldMake):
        phantom_slides(ONE, cache, stop)


def test_the_cache_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    monkeypatch.delenv("PATHNAV_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path("/home/u/.cache/pathnav")
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
    content = {"format": "pathnav-scenario-1", "cohort": cohort, "localise": {"agents": ["random"]}}
    scenario = make_scenario(content)
    found = cases(scenario, scenario_slides(scenario, print))
    assert [case.query.magnification for case in found] == [2.5, 10, 40]
    assert {case.slide_name for case in found} == {"phantom-3.tiff"}
    assert all(case.query.organ == "phantom" for case in found)
