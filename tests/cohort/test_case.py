"""From a whole scenario on real files to its cases."""

import json
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pathnav.cohort.case import Case
from pathnav.cohort.case import cases as cases_on
from pathnav.cohort.names import slide_names
from pathnav.cohort.scenario import Scenario
from pathnav.cohort.scenario_file import make_scenario
from pathnav.errors import AnnotationError, ConfigError, SlideError
from support.blot_slide import write_blot_slide
from support.trees import tree_document, write_cohort, write_json, write_slide

ORGANS = {"x": "breast", "y": "breast", "z": "skin"}


def cases(scenario: Scenario) -> list[Case]:
    return cases_on(scenario, scenario.cohort.slides or ())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with three slides and their trees."""
    folder = tmp_path_factory.mktemp("cohort")
    write_cohort(folder, ORGANS)
    yield folder


def scenario(folder: Path, sample: dict[str, Any] | None = None, seed: int = 7, **localise: Any) -> Scenario:
    """Return a scenario about the three slides."""
    slides = [{"path": f"{name}.tif", "tree": f"{name}.json"} for name in ORGANS]
    cohort = {"slides": slides, "sample": sample}
    content = {"cohort": cohort, "localise": {"agents": ["random"], **localise}, "seed": seed}
    return make_scenario({"format": "pathnav-scenario-1", **content}, folder=folder)


def test_every_node_of_every_slide_is_a_case_in_a_stable_order(folder: Path) -> None:
    found = cases(scenario(folder))
    ids = [f"{name}.tif/{node}/base" for name in ORGANS for node in ("a", "b", "a1", "a2", "a1i", "a2i")]
    assert [case.id for case in found] == ids
    assert [case.query.budget for case in found[:6]] == [10, 10, 7, 7, 5, 5]


def test_the_order_of_the_slides_in_the_file_makes_no_difference(folder: Path) -> None:
    content = scenario(folder, {"slides": 2, "queries_per_magnification": 1}).resolved()
    backwards = {**content, "cohort": {**content["cohort"], "slides": content["cohort"]["slides"][::-1]}}
    assert cases(make_scenario(content)) == cases(make_scenario(backwards))


def test_a_sweep_asks_every_query_with_every_budget(folder: Path) -> None:
    found = cases(
        scenario(folder, {"slides": 1, "queries_per_magnification": 1}, budget={"sweep": ["tight", [9, 8, 7]]})
    )
    assert [(case.budget, case.query.budget) for case in found] == [
        ("tight", 5), ("9-8-7", 9), ("tight", 3), ("9-8-7", 8), ("tight", 2), ("9-8-7", 7)
    ]  # fmt: skip
    assert len({case.id for case in found}) == 6


def test_magnifications_limit_what_is_asked(folder: Path) -> None:
    assert {case.query.magnification for case in cases(scenario(folder, magnifications=[40, 10]))} == {10, 40}


def test_a_sample_is_kept_and_what_it_lacks_is_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = cases(scenario(folder, {"slides": 50, "stratify": "organ", "queries_per_magnification": 1}))
    assert len(found) == 9
    assert "the sample asks for 50 slides, the cohort has 3 with queries" in caplog.text


def test_jitter_moves_the_regions_of_all_but_2_5x_the_same_way_under_every_budget(folder: Path) -> None:
    still = cases(scenario(folder, budget={"sweep": ["tight", "base"]}))
    moved = cases(scenario(folder, budget={"sweep": ["tight", "base"]}, jitter=0.25))
    for before, after in zip(still, moved, strict=True):
        assert (before.query.region != after.query.region) is (before.query.magnification > 2.5), before.id
        assert after.query.region.holds_point(after.target.box.centre)
    regions = {case.id.rsplit("/", 1)[0]: case.query.region for case in moved}
    assert all(regions[case.id.rsplit("/", 1)[0]] == case.query.region for case in moved)
    assert moved != cases(scenario(folder, budget={"sweep": ["tight", "base"]}, jitter=0.25, seed=8))


def test_swapped_findings_are_other_findings_of_the_same_magnification_for_the_same_target(folder: Path) -> None:
    plain = cases(scenario(folder))
    swapped = cases(scenario(folder, swapped_findings=True, magnifications=[2.5, 40]))
    by_id = {case.id: case for case in plain}
    texts = {m: {c.query.finding for c in plain if c.query.magnification == m} for m in (2.5, 40)}
    for case in swapped:
        assert case.query.finding != by_id[case.id].query.finding
        assert case.query.finding in texts[case.query.magnification]
        assert case.target == by_id[case.id].target


def test_swapping_where_all_findings_are_the_same_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="swapped_findings needs two different findings at 10x"):
        cases(scenario(folder, swapped_findings=True))


def test_the_scenarios_organ_goes_before_the_trees(folder: Path) -> None:
    content = scenario(folder).resolved()
    content["cohort"]["slides"][0]["organ"] = "lung"
    found = cases(make_scenario(content))
    assert {case.slide_name: case.query.organ for case in found} == {
        "x.tif": "lung",
        "y.tif": "breast",
        "z.tif": "skin",
    }


def test_a_case_travels_to_another_process_and_opens_its_slide(folder: Path) -> None:
    case = pickle.loads(pickle.dumps(cases(scenario(folder))[0]))
    assert isinstance(case, Case)
    with case.slide.open() as slide:
        assert slide.fingerprint == case.fingerprint
        assert slide.bounds == case.query.region


def test_the_record_of_a_case_is_plain_json_with_the_target(folder: Path) -> None:
    record = cases(scenario(folder))[4].as_json()
    assert json.loads(json.dumps(record)) == record
    assert (record["id"], record["region"], record["target"]) == (
        "x.tif/a1i/base",
        [200, 200, 400, 400],
        [300, 300, 100, 100],
    )


def test_faults_of_all_trees_are_told_at_once(folder: Path, tmp_path: Path) -> None:
    for name, box in {"x": [1999, 0, 9, 9], "y": [0, 0, 9, 1601]}.items():
        write_slide(tmp_path / f"{name}.tif")
        document = tree_document()
        document["slides"][0]["nodes"][5]["box"] = box
        write_json(tmp_path / f"{name}.json", document)
    broken = tree_document()
    broken["slides"][0]["nodes"][5]["finding"] = ""
    write_json(folder / "broken.json", broken)
    content = scenario(tmp_path).resolved()
    content["cohort"]["slides"] = content["cohort"]["slides"][:2]
    with pytest.raises(AnnotationError) as caught:
        cases(make_scenario(content))
    assert [line.split(": its")[0] for line in str(caught.value).splitlines()] == [
        f"{tmp_path}/x.json: slide 'a.tif', node 'b'",
        f"{tmp_path}/y.json: slide 'a.tif', node 'b'",
    ]


def test_a_tree_of_other_slides_is_refused_with_its_file(folder: Path, tmp_path: Path) -> None:
    several = [tree_document(name)["slides"][0] for name in ("p.tif", "q.tif")]
    path = write_json(tmp_path / "several.json", {"format": "pathnav-tree-1", "slides": several})
    content = scenario(folder).resolved()
    content["cohort"]["slides"][0]["tree"] = str(path)
    with pytest.raises(AnnotationError, match=r"several\.json: expected one tree for a slide named 'x', found 0"):
        cases(make_scenario(content))


def one_slide(path: Path, **slide: Any) -> Scenario:
    """Return a scenario about one slide."""
    content = {"cohort": {"slides": [{"path": str(path), **slide}]}, "localise": {"agents": ["random"]}}
    return make_scenario({"format": "pathnav-scenario-1", **content})


def test_a_slide_without_a_scale_is_opened_by_its_trees_mpp_else_refused(tmp_path: Path) -> None:
    path = write_blot_slide(tmp_path / "blot.tif", 2000, 1600, [])
    tree = write_json(tmp_path / "t.json", tree_document(mpp=0.3))
    case = cases(one_slide(path, tree=str(tree)))[0]
    with case.slide.open() as slide:
        assert slide.mpp_um == (0.3, 0.3)
    write_json(tree, tree_document(mpp=None))
    with pytest.raises(SlideError, match=r"blot\.tif: has no mpp and no objective power"):
        cases(one_slide(path, tree=str(tree)))
    assert len(cases(one_slide(path, tree=str(tree), mpp=0.5))) == 6


def test_a_cohort_without_trees_asks_nothing_and_is_refused(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigError, match=r"asks nothing: no tree of its slides has a node at 2\.5x, 10x, 40x"):
        cases(one_slide(folder / "x.tif"))
    assert "slide x.tif has no tree" in caplog.text


def test_names_of_slides_do_not_depend_on_where_the_cohort_lies() -> None:
    def named(root: str) -> list[str]:
        return list(
            slide_names([f"{root}/p/slide.svs", f"{root}/q/slide.svs", f"{root}/q/other.svs", "s3://b/c.svs"]).values()
        )

    assert named("/data") == named("/mnt/copy") == ["p/slide.svs", "q/slide.svs", "other.svs", "s3://b/c.svs"]
