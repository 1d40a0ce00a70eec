"""Memory stays bounded: large regions are reduced in blocks, and many open slides share one tile cache."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.peak_memory import PEAK_MB
from support.wide_slide import write_wide_slide

SIDES_PX = {"jpeg": 15_360, "deflate": 15_360}
LIMITS_MB = {
    "jpeg": 260,
    "deflate": 400,
}  # a whole level takes 675; measured: 157 to 192 and 207 to 314, the growth of the peak

OVERVIEW = (
    PEAK_MB
    + """
import json, sys
from pathnav.slide import open_slide
from pathnav.geometry import Box
with open_slide(sys.argv[1]) as slide:
    slide.read(Box(0, 0, 512, 512), max_side_px=512)
    before = peak_mb()
    rgb = slide.overview(max_side_px=1024)
    wide = slide.read(Box(0, 0, 9000, 9000), max_side_px=3000)
    after = peak_mb()
columns = rgb.mean((0, 2)).reshape(4, -1).mean(1).tolist()
print(json.dumps({"grown_mb": after - before, "columns": columns, "shape": [rgb.shape, wide.shape]}))
"""
)

MANY = """
import json, psutil, sys
from pathnav.slide import open_slide
from pathnav.geometry import Box
paths = sys.argv[1:]
memory = lambda: psutil.Process().memory_info().rss / 2**20
for path in paths:
    open_slide(path, mpp=0.5).close()
before = memory()
slides = [open_slide(paths[i % len(paths)], mpp=0.5) for i in range(40)]
for slide in slides:
    for i in range(12):
        slide.read(Box(slide.bounds.x + 137 * i, slide.bounds.y + 151 * i, 512, 512), magnification=20)
grown = memory() - before
for slide in slides:
    slide.close()
print(json.dumps({"grown_mb": grown}))
"""


def run(code: str, *arguments: str) -> dict[str, object]:
    """Run code in an interpreter of its own, since a peak once reached hides all later ones."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("packing", ["jpeg", pytest.param("deflate", marks=pytest.mark.slow)])
def test_an_overview_of_a_slide_without_small_levels_never_holds_a_whole_level(tmp_path: Path, packing: str) -> None:
    path = write_wide_slide(tmp_path / "wide.tif", SIDES_PX[packing], packing)
    found = run(OVERVIEW, str(path))
    assert found["shape"] == [[1024, 1024, 3], [3000, 3000, 3]]
    assert float(str(found["grown_mb"])) < LIMITS_MB[packing]  # a whole level, as RGBA: 900 MB and 400 MB
    assert found["columns"] == pytest.approx([222.5, 187.5, 152.5, 117.5], abs=2)


def test_forty_open_slides_stay_near_a_hundred_megabytes(shared: Path) -> None:
    names = ["mirax-sparse-bounds.mrxs", "CMU-1-Small-Region.svs", "svs-40x-3levels.svs", "tiff-pyramid-0.5um.tif"]
    found = run(MANY, *(str(shared / "slides" / name) for name in names))
    assert float(str(found["grown_mb"])) < 130
