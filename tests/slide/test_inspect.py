"""What `pathnav inspect` tells of a slide."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from support.commands import Command
from support.overviews import blank, with_tissue


@pytest.fixture
def described(pathnav: Command, shared: Path) -> Any:
    """Return a function that gives the facts of a file, of `shared` where it has no folder."""

    def facts(path: Path | str, *options: str) -> dict[str, Any]:
        said = pathnav("inspect", shared / "slides" / path, "--json", *options)
        assert said.code == 0
        return dict(json.loads(said.out))

    return facts


def test_everything_about_a_slide_is_told(described: Any) -> None:
    found = described("svs-40x-3levels.svs")
    assert (found["format"], found["vendor_format"], found["reader"]) == ("pathnav-inspect-1", "aperio", "openslide")
    assert (found["dimensions"], found["bounds"]) == ([4443, 3567], [0, 0, 4443, 3567])
    assert [level["dimensions"] for level in found["levels"]] == [[4443, 3567], [1110, 891], [277, 222]]
    assert found["levels"][1]["downsample"] == pytest.approx([4443 / 1110, 3567 / 891])
    assert (found["mpp_um"], found["mpp_source"], found["objective_power"]) == ([0.252, 0.252], "vendor", 40)
    assert found["native_magnification"] == pytest.approx(39.68, abs=0.01)
    assert found["tissue"] == {"status": "tissue", "share": pytest.approx(0.63, abs=0.03)}
    assert (found["warnings"], found["failed_share"], found["is_phantom"]) == ([], 0, False)
    assert len(found["fingerprint"]) == 64
    shown = [(it["magnification"], it["resolution"], round(it["factor"], 2)) for it in found["magnifications"]]
    assert shown == [(2.5, "reduced", 15.87), (10, "reduced", 3.97), (40, "native", 1)]
    enlarged = described("CMU-1-Small-Region.svs")["magnifications"][2]
    assert (enlarged["resolution"], enlarged["factor"]) == ("upsampled", pytest.approx(1.996))


def test_a_slide_without_a_scale_is_told_with_the_options_that_supply_it(described: Any) -> None:
    found = described("svs-no-mpp-no-appmag.svs")
    assert (found["mpp_um"], found["mpp_source"], found["magnifications"]) == (None, None, None)
    assert "--mpp" in found["scale_options"] and "--objective-power" in found["scale_options"]
    assert any("--mpp" in warning for warning in found["warnings"])
    given = described("svs-no-mpp-no-appmag.svs", "--mpp", "0.5")
    assert (given["mpp_um"], given["mpp_source"], given["scale_options"]) == ([0.5, 0.5], "user", None)
    assert given["warnings"] == []


def test_damage_and_a_scanned_area_are_told_and_warned_of(described: Any) -> None:
    found = described("corrupt-one-tile-zeroed.svs")
    assert found["failed_share"] == pytest.approx(0.0087, abs=1e-4)
    assert any("damaged tiles: 1 of 130" in warning for warning in found["warnings"])
    sparse = described("mirax-sparse-bounds.mrxs")
    assert sparse["bounds"] == [2304, 1792, 2048, 2816]
    assert any("smaller than the plane of 6144 x 6144" in warning for warning in sparse["warnings"])


def test_a_phantom_and_a_dark_background_are_told(described: Any, tmp_path: Path) -> None:
    rgb, _ = with_tissue(blank())
    about = {"description": "pathnav phantom", "resolution": (20_000, 20_000), "resolutionunit": "CENTIMETER"}
    for name, image, options in (("phantom.tif", rgb, about), ("dark.tif", np.zeros_like(rgb), {})):
        tifffile.imwrite(tmp_path / name, image, tile=(128, 128), photometric="rgb", metadata=None, **options)
    found = described(tmp_path / "phantom.tif")
    assert (found["is_phantom"], found["vendor_format"], found["mpp_source"]) == (True, "generic-tiff", "tiff-tag")
    assert found["tissue"]["share"] == pytest.approx(np.pi * 0.2 * 0.28, abs=0.01)
    assert described(tmp_path / "dark.tif")["tissue"] == {"status": "not-brightfield", "share": None}
