"""From windows to embeddings: the right pixels, each shown once and kept, and reading that runs ahead."""

import multiprocessing
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

from pathnav.errors import RecordError, SlideError
from pathnav.geometry import Box
from pathnav.localise.survey import Survey
from pathnav.retrieval.embeddings import AHEAD, EmbeddingStore, Images, Rows
from pathnav.retrieval.windows import Numbers, WindowGrid
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
    assert encoder.shown == grid.count
    longest = max(grid.width, grid.height)
    for vector, box in zip(found, grid.boxes().tolist(), strict=True):
        shown = slide.read(Box.from_list(box), magnification=40 * encoder.side_px / longest)
        image = np.full((1, encoder.side_px, encoder.side_px, 3), 255, np.uint8)
        shown = shown[: encoder.side_px, : encoder.side_px]
        image[0, : shown.shape[0], : shown.shape[1]] = shown
        assert float(vector @ PlainEncoder(raster=4).encode_images(image)[0]) > 0.999


def test_what_is_kept_is_not_shown_again_and_changes_nothing(slide: Slide, tmp_path: Path) -> None:
    region = Box(11, 5, 2030, 2030)
    grid = WindowGrid.over(region, 101, 93)
    Survey(slide, region, False, EmbeddingStore(tmp_path)).embed(grid, every(grid)[::3], PlainEncoder())
    encoder, store = PlainEncoder(), EmbeddingStore(tmp_path)
    assert store.costs is None
    found = Survey(slide, region, False, store).embed(grid, every(grid), encoder)
    kept = every(grid)[::3].size
    assert encoder.shown == grid.count - kept
    assert store.costs is not None
    assert (store.costs["encoded"], store.costs["kept_from_before"]) == (grid.count - kept, kept)
    assert store.costs["store_bytes"] > 0
    assert np.array_equal(found, Survey(slide, region, False).embed(grid, every(grid), PlainEncoder()))


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
    assert np.allclose(blank, blank[0])
    encoder = PlainEncoder()
    Survey(slide, region, False, store).embed(grid, every(grid), encoder)
    assert encoder.shown == grid.count


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


def embedded(count: int, source: _Batches, encoder: PlainEncoder, store: EmbeddingStore, **about: Any) -> Any:
    """Return the embeddings of windows that stand nowhere."""
    settings = {"slide": "slide", "grid": {"tile_px": 256}, **about}
    return store.embedded(np.arange(count), np.zeros((count, 4)), source, model=encoder, **settings)


def test_what_was_encoded_before_a_failure_is_kept(tmp_path: Path) -> None:
    encoder, store = PlainEncoder(), EmbeddingStore(tmp_path)
    with pytest.raises(SlideError, match="gone"):
        embedded(20, _Batches(20, fails_after=12), encoder, store)
    assert encoder.shown == 10  # two batches of five
    embedded(20, _Batches(20), encoder, store)
    assert encoder.shown == 20


def test_reading_runs_ahead_in_a_thread_of_its_own_but_not_without_bound() -> None:
    source, seen = _Batches(200), []

    class Slow(PlainEncoder):
        def encode_images(self, images: np.ndarray) -> np.ndarray:
            time.sleep(0.005)
            seen.append(source.given)
            return super().encode_images(images)

    encoder = Slow()
    embedded(200, source, encoder, EmbeddingStore())
    assert not any(name.startswith("MainThread") for name in source.threads)
    ahead = [given - encoder.batch * (place + 1) for place, given in enumerate(seen)]
    assert 0 < max(ahead) <= encoder.batch * (AHEAD + 1)


def test_the_model_is_shown_batches_of_one_size() -> None:
    encoder = PlainEncoder()
    embedded(23, _Batches(23), encoder, EmbeddingStore())
    assert encoder.calls == [5, 5, 5, 5, 3]


def test_another_slide_grid_reader_or_model_is_another_embedding(tmp_path: Path) -> None:
    encoder = PlainEncoder()
    for about in ({}, {"slide": "another"}, {"grid": {"tile_px": 128}}):
        embedded(3, _Batches(3), encoder, EmbeddingStore(tmp_path), **about)
    embedded(3, _Batches(3), encoder, EmbeddingStore(tmp_path, {"reader": "another"}))
    assert encoder.shown == 12
    other = PlainEncoder(name="other")
    embedded(3, _Batches(3), other, EmbeddingStore(tmp_path))
    assert other.shown == 3


def test_only_the_user_may_look_at_embeddings(tmp_path: Path) -> None:
    embedded(1, _Batches(1), PlainEncoder(), EmbeddingStore(tmp_path / "run" / "embeddings"))
    made = [tmp_path / "run" / "embeddings", *(tmp_path / "run" / "embeddings").iterdir()]
    assert [path.stat().st_mode & 0o077 for path in made] == [0, 0]


def test_without_a_folder_embeddings_go_with_the_object() -> None:
    store = EmbeddingStore()
    embedded(2, _Batches(2), PlainEncoder(), store)
    folder = store.folder
    assert list(folder.iterdir())
    del store
    assert not folder.exists()


DIMENSIONS = 192
ROW_BYTES = 4 * 8 + 4 * DIMENSIONS


def unit_rows(count: int) -> NDArray[np.float32]:
    """Return random unit vectors."""
    rows = np.random.default_rng(0).normal(size=(count, DIMENSIONS))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def boxes_of(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a box for each number."""
    return np.stack([numbers * 10.5, numbers, numbers + 20, numbers + 30], axis=1).astype(float)


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    return Rows(tmp_path / "folder" / "a.rows", DIMENSIONS)


def test_what_was_put_is_found_by_number_and_box(rows: Rows) -> None:
    numbers, asked, vectors = np.array([7, 2, 3, 900]), np.array([2, 3, 4, 7, 900, 901]), unit_rows(4)
    assert not rows.find(asked, boxes_of(asked))[1].any()
    rows.put(numbers, boxes_of(numbers), vectors)
    found, known = rows.find(asked, boxes_of(asked))
    assert known.tolist() == [True, True, False, True, True, False]
    assert np.array_equal(found[known], vectors[[1, 2, 0, 3]])
    assert not rows.find(asked, boxes_of(asked) + 1)[1].any()


@pytest.mark.parametrize("left", [0, 1, 100, 799, 801, 1600])
def test_a_row_that_was_cut_short_is_not_found_and_can_be_written_again(rows: Rows, left: int) -> None:
    numbers, vectors = np.arange(3), unit_rows(3)
    rows.put(numbers, boxes_of(numbers), vectors)
    rows.path.write_bytes(rows.path.read_bytes()[:left])
    _, known = rows.find(numbers, boxes_of(numbers))
    assert known.tolist() == [left >= ROW_BYTES * (row + 1) for row in range(3)]
    rows.put(numbers[~known], boxes_of(numbers)[~known], vectors[~known])
    again, known = rows.find(numbers, boxes_of(numbers))
    assert known.all()
    assert np.array_equal(again, vectors)


def test_a_row_whose_end_is_zeros_is_not_found(rows: Rows) -> None:
    numbers = np.arange(2)
    rows.put(numbers, boxes_of(numbers), unit_rows(2))
    rows.path.write_bytes(rows.path.read_bytes()[:-300] + bytes(300))
    assert rows.find(numbers, boxes_of(numbers))[1].tolist() == [True, False]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    numbers = np.arange(1)
    with pytest.raises(RecordError, match="cannot be"):
        Rows(tmp_path / "file" / "a.rows", DIMENSIONS).put(numbers, boxes_of(numbers), unit_rows(1))


def _put_thirds(path: Path, third: int) -> None:
    numbers = np.arange(third, 600, 3)
    for some in np.split(numbers, range(7, numbers.size, 7)):
        Rows(path, DIMENSIONS).put(some, boxes_of(some), unit_rows(600)[some])


def test_processes_that_write_at_once_lose_nothing(rows: Rows) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_put_thirds, args=(rows.path, third)) for third in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    numbers = np.arange(600)
    found, known = rows.find(numbers, boxes_of(numbers))
    assert known.all()
    assert np.array_equal(found, unit_rows(600))
