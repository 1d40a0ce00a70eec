"""The stub measures haematoxylin, and nothing else."""

import base64

import numpy as np
import pytest

from pathnav.model.stub_appetite import Appetite, appetite
from pathnav.model.stub_rules import BadRequest
from pathnav.model.stub_vision import Eyes, see
from support.painted_slide import jpeg, stained


def flat(haematoxylin: float, eosin: float, side: int = 256) -> np.ndarray:
    return stained(np.full((side, side), haematoxylin), np.full((side, side), eosin))


def url(rgb: np.ndarray) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(jpeg(rgb)).decode()


@pytest.mark.parametrize("side", [64, 256, 1024])
def test_density_is_the_haematoxylin_that_was_painted_whatever_the_eosin(side: int) -> None:
    for haematoxylin in (0.1, 0.4, 0.8):
        for eosin in (0.1, 0.5):
            assert see(jpeg(flat(haematoxylin, eosin, side))).density == pytest.approx(haematoxylin, abs=0.02)


def test_blank_glass_is_neither_dense_nor_tissue() -> None:
    for grey in (255, 240, 225):
        sight = see(jpeg(np.full((128, 128, 3), grey, np.uint8)))
        assert sight.density == 0 and sight.tissue.max() == 0


@pytest.mark.parametrize("colour", [(0, 140, 0), (20, 60, 220), (10, 10, 10)])
def test_guides_and_pen_are_not_taken_for_tissue(colour: tuple[int, int, int]) -> None:
    rgb = flat(0.3, 0.3)
    rgb[:64] = colour
    assert see(jpeg(rgb)).density == pytest.approx(0.3, abs=0.02)


def test_cells_lie_where_the_tissue_lies() -> None:
    rgb = np.full((256, 512, 3), 255, np.uint8)
    rgb[128:, 384:] = flat(0.5, 0.2)[:128, :128]
    tissue = see(jpeg(rgb)).tissue
    rows, cols = tissue.shape
    assert tissue[rows // 2 + 1 :, 3 * cols // 4 + 1 :].min() > 0.95
    assert tissue[: rows // 2 - 1].max() == 0 and tissue[:, : 3 * cols // 4 - 1].max() == 0


def test_known_images_are_not_analysed_again_and_only_so_many_are_kept() -> None:
    eyes, urls = Eyes(limit=2), [url(flat(0.1 * n, 0.2, 64)) for n in range(1, 4)]
    first = eyes.look(urls[0])
    assert eyes.look(urls[0]) is first
    for later in urls[1:]:
        eyes.look(later)
    assert eyes.look(urls[0]) is not first


@pytest.mark.parametrize(
    "broken",
    ["https://host/a.jpg", "data:image/jpeg;base64,", "data:image/jpeg;base64,!!", "data:image/jpeg;base64,AAAA"],
)
def test_what_is_no_inlined_image_is_refused(broken: str) -> None:
    with pytest.raises(BadRequest, match="image"):
        Eyes().look(broken)


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        ("Dense inflammatory infiltrate", Appetite.DENSE),
        ("Solid sheets of tumour cells with little stroma between them", Appetite.DENSE),
        ("Lymphoid aggregate of crowded small dark nuclei, beside fat", Appetite.DENSE),
        ("Reactive glands with preserved lumen and evenly spaced basal nuclei", Appetite.GLANDULAR),
        ("Wavy bundles of collagen with slender nuclei, beside tumour nests", Appetite.SPARSE),
        ("Sparse pale tumour cells scattered in a loose lilac matrix", Appetite.SPARSE),
        ("Mature fat with thin-walled, empty vacuoles", Appetite.PALE),
        ("Blank glass", Appetite.PALE),
        ("Something else", Appetite.DENSE),
    ],
)
def test_words_decide_the_appetite(finding: str, expected: Appetite) -> None:
    assert appetite(finding.lower()) is expected
