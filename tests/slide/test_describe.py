"""What `pathnav inspect` prints."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from pathnav.slide import open_slide
from pathnav.slide.describe import describe
from support.overviews import blank, with_tissue


def described(path: Path, **options: float) -> dict[str, Any]:
    with open_slide(path, **options) as slide:
        found = describe(slide)
    assert json.loads(json.dumps(found, allow_nan=False)) == found, "plain JSON types only"
    return found


def test_description_says_everything_about_a_slide(shared: Path) -> None:
    path = shared / "slides" / "svs-40x-3levels.svs"
    found = described(path)
    assert found["format"] == "pathnav-inspect-1"
    assert (found["path"], found["vendor_format"], found["reader"]) == (str(path), "aperio", "openslide")
    assert (found["dimensions"], found["bounds"]) == ([4443, 3567], [0, 0, 4443, 3567])
    assert [level["dimensions"] for level in found["levels"]] == [[4443, 3567], [1110, 891], [277, 222]]
    assert found["levels"][1]["downsample"] == pytest.approx([4443 / 1110, 3567 / 891])
    assert (found["mpp_um"], found["mpp_source"], found["objective_power"]) == ([0.252, 0.252], "vendor", 40)
    assert found["native_magnification"] == pytest.approx(39.68, abs=0.01)
    assert found["tissue"]["status"] == "tissue"
    assert found["tissue"]["share"] == pytest.approx(0.63, abs=0.03)
    assert (found["warnings"], found["failed_share"], found["is_phantom"]) == ([], 0, False)
    assert len(found["fingerprint"]) == 64


def test_magnifications_are_native_reduced_or_upsampled_with_their_factor(shared: Path) -> None:
    of_40x = described(shared / "slides" / "svs-40x-3levels.svs")["magnifications"]
    assert [(m["magnification"], m["resolution"]) for m in of_40x] == [
        (2.5, "reduced"),
        (10, "reduced"),
        (40, "native"),
    ]
    assert [m["factor"] for m in of_40x] == pytest.approx([15.87, 3.97, 1], abs=0.01)
    of_20x = described(shared / "slides" / "CMU-1-Small-Region.svs")["magnifications"]
    assert (of_20x[2]["resolution"], of_20x[2]["factor"]) == ("upsampled", pytest.approx(1.996))


def test_slide_without_a_scale_is_described_with_the_options_that_supply_it(shared: Path) -> None:
    found = described(shared / "slides" / "svs-no-mpp-no-appmag.svs")
    assert (found["mpp_um"], found["mpp_source"], found["magnifications"]) == (None, None, None)
    assert "--mpp" in found["scale_options"]
    assert "--objective-power" in found["scale_options"]
    assert found["tissue"]["status"] == "tissue"
    assert any("--mpp" in warning for warning in found["warnings"])


def test_scale_given_by_the_user_is_described_as_the_users(shared: Path) -> None:
    found = described(shared / "slides" / "svs-no-mpp-no-appmag.svs", mpp=0.5)
    assert (found["mpp_um"], found["mpp_source"], found["scale_options"]) == ([0.5, 0.5], "user", None)
    assert found["warnings"] == []


def test_damaged_tile_is_described_with_its_share(shared: Path) -> None:
    found = described(shared / "slides" / "corrupt-one-tile-zeroed.svs")
    assert found["failed_share"] == pytest.approx(0.0087, abs=1e-4)
    assert any("damaged tiles: 1 of 130" in warning for warning in found["warnings"])


def test_scanned_area_of_a_sparse_slide_is_described_and_warned_of(shared: Path) -> None:
    found = described(shared / "slides" / "mirax-sparse-bounds.mrxs")
    assert found["bounds"] == [2304, 1792, 2048, 2816]
    assert any("smaller than the plane of 6144 x 6144" in warning for warning in found["warnings"])
    assert found["tissue"]["share"] == pytest.approx(0.37, abs=0.03)


@pytest.fixture
def phantom(tmp_path: Path) -> Path:
    """Return a tiled slide of 512 px at 0.5 um with stained tissue, that calls itself a phantom."""
    path = tmp_path / "phantom.tif"
    rgb, _ = with_tissue(blank())
    about = {"description": "pathnav phantom", "resolution": (20_000, 20_000), "resolutionunit": "CENTIMETER"}
    tifffile.imwrite(path, rgb, tile=(128, 128), photometric="rgb", metadata=None, **about)
    return path


def test_phantom_is_described_as_one(phantom: Path) -> None:
    found = described(phantom)
    assert found["is_phantom"]
    assert (found["vendor_format"], found["mpp_source"]) == ("generic-tiff", "tiff-tag")
    assert found["tissue"]["share"] == pytest.approx(np.pi * 0.2 * 0.28, abs=0.01)


def test_slide_on_a_dark_background_has_an_unknown_tissue_share(tmp_path: Path) -> None:
    path = tmp_path / "dark.tif"
    tifffile.imwrite(path, np.zeros((256, 256, 3), dtype=np.uint8), tile=(128, 128), photometric="rgb")
    assert described(path)["tissue"] == {"status": "not-brightfield", "share": None}
