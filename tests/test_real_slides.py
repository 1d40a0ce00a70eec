"""The commands on real slide files, with no set-up: what the README promises."""

import json
from pathlib import Path

import pytest

from support.commands import Command

READABLE = [
    *("CMU-1-Small-Region.svs", "CMU-1-Small-Region-dicom", "virtual-hgsc-groundtruth.svs", "svs-40x-3levels.svs"),
    *("svs-decimal-comma-mpp.svs", "svs-no-mpp-has-appmag.svs", "tiff-pyramid-0.5um.tif", "ome-subifd.ome.tif"),
    *("tiff-striped-not-tiled.tif", "mirax-sparse-bounds.mrxs", "corrupt-one-tile-zeroed.svs"),
]
WITHOUT_SCALE = ["svs-no-mpp-no-appmag.svs", "tiff-pyramid-72dpi.tif"]


def slide_of(shared: Path, name: str) -> Path:
    """Return a slide file; of a DICOM series any of its files."""
    path = shared / "slides" / name
    return sorted(path.iterdir())[0] if path.is_dir() else path


@pytest.mark.parametrize(
    ("name", "more"), [*((name, ()) for name in READABLE), *((name, ("--mpp", 0.5)) for name in WITHOUT_SCALE)]
)
def test_locate_runs_on_every_readable_slide(
    pathnav: Command, shared: Path, name: str, more: tuple[object, ...]
) -> None:
    question = ("--finding", "dense inflammatory infiltrate", "--magnification", 10, "--json")
    said = pathnav("locate", slide_of(shared, name), *question, *more)
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["outcome"] == "finished"
    assert found["model"] == "stub-pixel-reader"
    assert found["box"] is not None


@pytest.mark.parametrize("name", WITHOUT_SCALE)
def test_a_slide_without_a_usable_scale_names_the_ways_out(pathnav: Command, shared: Path, name: str) -> None:
    said = pathnav("locate", slide_of(shared, name), "--finding", "x", "--magnification", 10)
    assert said.code == 2
    assert "--mpp" in said.err
    assert "--objective-power" in said.err


@pytest.mark.parametrize("name", [*READABLE, *WITHOUT_SCALE])
def test_inspect_runs_on_every_readable_slide(pathnav: Command, shared: Path, name: str) -> None:
    said = pathnav("inspect", slide_of(shared, name), "--json")
    assert said.code == 0, said.err
    facts = json.loads(said.out)
    assert facts["fingerprint"]
    assert (facts["mpp_um"] is None) == (name in WITHOUT_SCALE)
