"""From windows to embeddings: the right pixels, each shown once, and reading that runs ahead."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tifffile

from pathnav.errors import SlideError
from pathnav.geometry import Box
from pathnav.localise.survey import Survey
from pathnav.retrieval.embedding import AHEAD, Images, embedded
from pathnav.retrieval.store import EmbeddingStore, Numbers, Shelf
from pathnav.retrieval.windows import WindowGrid
from pathnav.slide import Slide, open_slide
from support.plain_encoder import PlainEncoder

MPP_UM = 0.25
SIDE_PX = 2048


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a slide whose pixels say where they are: red rises along x, green along y."""
    path = tmp_path_factory.mktemp("ramp") / "ramp.tiff"
    steps = np.arange(SIDE_PX)
    waves = np.uint8(8 * (steps // 64 % 16))  # blocks of 64 px, so that neighbouring windows differ
    pixels = np.empty((SIDE_PX, SIDE_PX, 3), np.uint8)
    pixels[..., 0], pixels[..., 1] = (steps // 9)[None, :], (steps // 9)[:, None]
    pixels[..., 2] = waves[None, :] + waves[:, None]
    with tifffile.TiffWriter(path) as writer:
        for level, step in enumerate((1, 4)):
            cells = pixels.reshape(SIDE_PX // step, step, SIDE_PX // step, step, 3).mean(axis=(1, 3)).astype(np.uint8)
            writer.write(cells, tile=(256, 256), photometric="rgb", subfiletype=level, metadata=None)
    return path


@pytest.fixture
def slide(path: Path) -> Iterator[Slide]:
    """Open the slide."""
    with open_slide(path, mpp=MPP_UM) as opened:
        yield opened


def every(grid: WindowGrid) -> Numbers:
    """Return the numbers of all windows."""
    return np.arange(grid.count)


@pytest.mark.parametrize(
    ("region", "width", "height"),
    [
        (Box(0, 0, 2048, 2048), 512, 512),
        (Box(100, 333, 1001, 777), 160, 96),
        (Box(7, 9, 300, 1200), 40.5, 77.25),
        (Box(0, 0, 2048, 2048), 1500, 90),
    ],
)
def test_an_embedding_is_that_of_the_windows_own_pixels(slide: Slide, region: Box, width: float, height: float) -> None:
    encoder = PlainEncoder(raster=4)
    grid = WindowGrid.over(region, width, height)
    found = Survey(slide, region, False).embed(grid, every(grid), encoder)
    assert found.encoded == encoder.shown == grid.count
    longest = max(grid.width, grid.height)
    for vector, box in zip(found.vectors, grid.boxes().tolist(), strict=True):
        shown = slide.read(Box.from_list(box), magnification=40 * encoder.side_px / longest)
        image = np.full((1, encoder.side_px, encoder.side_px, 3), 255, np.uint8)
        shown = shown[: encoder.side_px, : encoder.side_px]
        image[0, : shown.shape[0], : shown.shape[1]] = shown
        assert float(vector @ PlainEncoder(raster=4).encode_images(image)[0]) > 0.999


def test_a_second_query_on_the_same_grid_encodes_no_image(slide: Slide, tmp_path: Path) -> None:
    region = Box(0, 0, 2048, 1024)
    grid = WindowGrid.over(region, 256, 256)
    first = Survey(slide, region, False, EmbeddingStore(tmp_path)).embed(grid, every(grid), PlainEncoder())
    encoder = PlainEncoder()
    second = Survey(slide, region, False, EmbeddingStore(tmp_path)).embed(grid, every(grid), encoder)
    assert (second.encoded, second.found, encoder.shown) == (0, grid.count, 0)
    assert np.array_equal(first.vectors, second.vectors)
    assert second.disk_bytes > 0


def test_what_is_missing_is_embedded_as_if_nothing_were_kept(slide: Slide, tmp_path: Path) -> None:
    region = Box(11, 5, 2030, 2030)
    grid = WindowGrid.over(region, 101, 93)
    survey = Survey(slide, region, False, EmbeddingStore(tmp_path))
    survey.embed(grid, every(grid)[::3], PlainEncoder())
    encoder = PlainEncoder()
    found = survey.embed(grid, every(grid), encoder)
    alone = Survey(slide, region, False).embed(grid, every(grid), PlainEncoder())
    assert encoder.shown == grid.count - every(grid)[::3].size
    assert np.array_equal(found.vectors, alone.vectors)


def test_a_region_is_read_once_for_all_its_windows(slide: Slide, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes: list[Box] = []
    real = Slide.reading

    def counted(self: Slide, box: Box, **how: float) -> object:
        boxes.append(box)
        return real(self, box, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(Slide, "reading", counted)
    region = Box(0, 0, 2048, 2048)
    grid = WindowGrid.over(region, 256, 256)
    Survey(slide, region, False).embed(grid, every(grid), PlainEncoder())
    assert boxes == [region]
    assert grid.count == 15 * 15


def test_blank_images_are_white_and_kept_apart(slide: Slide, tmp_path: Path) -> None:
    region = Box(0, 0, 1024, 1024)
    grid = WindowGrid.over(region, 256, 256)
    store = EmbeddingStore(tmp_path)
    blank = Survey(slide, region, True, store).embed(grid, every(grid), PlainEncoder())
    assert np.allclose(blank.vectors, blank.vectors[0])
    assert Survey(slide, region, False, store).embed(grid, every(grid), PlainEncoder()).encoded == grid.count


def test_a_survey_tells_what_its_windows_cover(slide: Slide) -> None:
    region = Box(0, 0, 1024, 1024)
    grid = WindowGrid.over(region, 256, 256)
    survey = Survey(slide, region, False)
    survey.embed(grid, np.array([0, 1, 8]), PlainEncoder())
    assert survey.boxes == grid.covered(np.array([0, 1, 8]))


class _Batches:
    """Yields one image after the other, and says how many it has given."""

    def __init__(self, count: int, fails_after: int | None = None) -> None:
        self.given, self._count, self._fails_after = 0, count, fails_after
        self.threads: set[str] = set()

    def __call__(self, missing: Numbers) -> Iterator[Images]:
        for place in missing[: self._count].tolist():
            if place == self._fails_after:
                raise SlideError("the slide has gone")
            self.given += 1
            self.threads.add(threading.current_thread().name)
            yield np.array([place]), np.full((1, 32, 32, 3), place, np.uint8)


def shelf_of(folder: Path, encoder: PlainEncoder) -> Shelf:
    """Return a shelf for windows that stand nowhere."""
    return EmbeddingStore(folder).shelf("slide", {}, encoder)


def test_what_was_encoded_before_a_failure_is_kept(tmp_path: Path) -> None:
    numbers, boxes, encoder = np.arange(20), np.zeros((20, 4)), PlainEncoder()
    shelf = shelf_of(tmp_path, encoder)
    with pytest.raises(SlideError, match="gone"):
        embedded(numbers, boxes, _Batches(20, fails_after=12), model=encoder, shelf=shelf)
    assert shelf.find(numbers, boxes).known.sum() == 10  # two batches of five
    again = embedded(numbers, boxes, _Batches(20), model=encoder, shelf=shelf)
    assert (again.found, again.encoded) == (10, 10)


def test_reading_runs_ahead_in_a_thread_of_its_own_but_not_without_bound(tmp_path: Path) -> None:
    source, encoder = _Batches(200), PlainEncoder()
    seen: list[int] = []

    class Slow(PlainEncoder):
        def encode_images(self, images: np.ndarray) -> np.ndarray:
            time.sleep(0.005)
            seen.append(source.given)
            return super().encode_images(images)

    embedded(np.arange(200), np.zeros((200, 4)), source, model=Slow(), shelf=shelf_of(tmp_path, encoder))
    assert not any(name.startswith("MainThread") for name in source.threads)
    ahead = [given - encoder.batch * (place + 1) for place, given in enumerate(seen)]
    assert 0 < max(ahead) <= encoder.batch * (AHEAD + 1)


def test_the_model_is_shown_batches_of_one_size(tmp_path: Path) -> None:
    encoder = PlainEncoder()
    embedded(np.arange(23), np.zeros((23, 4)), _Batches(23), model=encoder, shelf=shelf_of(tmp_path, encoder))
    assert encoder.calls == [5, 5, 5, 5, 3]
