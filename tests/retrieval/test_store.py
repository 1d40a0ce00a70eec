"""Embeddings on disk: what was put is found, by the box, and what is half written is not."""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pathnav.errors import RecordError
from pathnav.retrieval.store import EmbeddingStore, Shelf
from support.plain_encoder import PlainEncoder

GRID = {"magnification": 10.0, "tile_px": 256}


def unit_rows(count: int, dimensions: int, seed: int = 0) -> NDArray[np.float32]:
    """Return random unit vectors."""
    rows = np.random.default_rng(seed).normal(size=(count, dimensions))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def boxes_of(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a box for each number."""
    return np.column_stack([numbers * 10.5, numbers, np.full(numbers.size, 20), np.full(numbers.size, 30)]).astype(
        float
    )


def shelf_in(folder: Path, slide: str = "slide") -> Shelf:
    """Return the shelf of the plain encoder."""
    return EmbeddingStore(folder).shelf(slide, GRID, PlainEncoder())


def rows_file(folder: Path) -> Path:
    """Return the one file of rows."""
    (found,) = folder.glob("*/rows.bin")
    return found


def test_what_was_put_is_found_by_another_object(tmp_path: Path) -> None:
    numbers = np.array([7, 2, 3, 900])
    vectors = unit_rows(4, PlainEncoder().dimensions)
    shelf_in(tmp_path).put(numbers, boxes_of(numbers), vectors)
    asked = np.array([2, 3, 4, 7, 900, 901])
    found = shelf_in(tmp_path).find(asked, boxes_of(asked))
    assert found.known.tolist() == [True, True, False, True, True, False]
    assert np.array_equal(found.vectors[found.known], vectors[[1, 2, 0, 3]])


def test_nothing_is_made_before_something_is_put(tmp_path: Path) -> None:
    numbers = np.arange(3)
    assert not shelf_in(tmp_path / "store").find(numbers, boxes_of(numbers)).known.any()
    assert not (tmp_path / "store").exists()


def test_only_the_user_may_look_at_embeddings(tmp_path: Path) -> None:
    numbers = np.arange(1)
    shelf_in(tmp_path / "embeddings").put(numbers, boxes_of(numbers), unit_rows(1, PlainEncoder().dimensions))
    made = [tmp_path / "embeddings", *(tmp_path / "embeddings").rglob("*")]
    assert not [path for path in made if path.name != "about.json" and path.stat().st_mode & 0o077]


def test_another_box_slide_grid_or_model_is_another_embedding(tmp_path: Path) -> None:
    numbers = np.arange(3)
    store = EmbeddingStore(tmp_path)
    shelf_in(tmp_path).put(numbers, boxes_of(numbers), unit_rows(3, PlainEncoder().dimensions))
    others = [
        store.shelf("another", GRID, PlainEncoder()),
        store.shelf("slide", {**GRID, "tile_px": 128}, PlainEncoder()),
        store.shelf("slide", GRID, PlainEncoder(name="other")),
    ]
    others.append(EmbeddingStore(tmp_path, {"reader": "another"}).shelf("slide", GRID, PlainEncoder()))
    assert not any(shelf.find(numbers, boxes_of(numbers)).known.any() for shelf in others)
    assert not shelf_in(tmp_path).find(numbers, boxes_of(numbers) + 1).known.any()
    assert shelf_in(tmp_path).find(numbers, boxes_of(numbers)).known.all()


@pytest.mark.parametrize("left", [0, 1, 100, 799, 801, 1600])
def test_a_row_that_was_cut_short_is_not_found_and_can_be_written_again(tmp_path: Path, left: int) -> None:
    numbers, vectors = np.arange(3), unit_rows(3, PlainEncoder().dimensions)
    shelf_in(tmp_path).put(numbers, boxes_of(numbers), vectors)
    path = rows_file(tmp_path)
    row_bytes = path.stat().st_size // 3
    path.write_bytes(path.read_bytes()[:left])
    found = shelf_in(tmp_path).find(numbers, boxes_of(numbers))
    assert found.known.tolist() == [left >= row_bytes * (row + 1) for row in range(3)]
    shelf_in(tmp_path).put(numbers[~found.known], boxes_of(numbers)[~found.known], vectors[~found.known])
    again = shelf_in(tmp_path).find(numbers, boxes_of(numbers))
    assert again.known.all()
    assert np.array_equal(again.vectors, vectors)


def test_a_row_whose_end_is_zeros_is_not_found(tmp_path: Path) -> None:
    numbers = np.arange(2)
    shelf_in(tmp_path).put(numbers, boxes_of(numbers), unit_rows(2, PlainEncoder().dimensions))
    path = rows_file(tmp_path)
    content = bytearray(path.read_bytes())
    content[-300:] = bytes(300)
    path.write_bytes(content)
    assert shelf_in(tmp_path).find(numbers, boxes_of(numbers)).known.tolist() == [True, False]


def test_rows_far_apart_take_no_space_between(tmp_path: Path) -> None:
    numbers = np.array([0, 1_000_000])
    shelf = shelf_in(tmp_path)
    shelf.put(numbers, boxes_of(numbers), unit_rows(2, PlainEncoder().dimensions))
    assert rows_file(tmp_path).stat().st_size > 500_000_000
    assert 0 < shelf.disk_bytes < 100_000
    assert EmbeddingStore(tmp_path).disk_bytes == shelf.disk_bytes


def test_a_foreign_description_is_refused_in_a_sentence(tmp_path: Path) -> None:
    numbers = np.arange(2)
    shelf_in(tmp_path).put(numbers, boxes_of(numbers), unit_rows(2, PlainEncoder().dimensions))
    (rows_file(tmp_path).parent / "about.json").write_text("{}")
    with pytest.raises(RecordError, match=r"about\.json does not describe .* remove the folder"):
        shelf_in(tmp_path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    numbers = np.arange(1)
    with pytest.raises(RecordError, match="cannot be"):
        shelf_in(tmp_path / "file").put(numbers, boxes_of(numbers), unit_rows(1, PlainEncoder().dimensions))


def test_without_a_folder_it_goes_with_the_object() -> None:
    store = EmbeddingStore()
    numbers = np.arange(2)
    store.shelf("slide", GRID, PlainEncoder()).put(numbers, boxes_of(numbers), unit_rows(2, PlainEncoder().dimensions))
    assert store.shelf("slide", GRID, PlainEncoder()).find(numbers, boxes_of(numbers)).known.all()
    folder = store.folder
    del store
    assert not folder.exists()


def _put_thirds(folder: Path, third: int) -> None:
    numbers = np.arange(third, 600, 3)
    shelf = shelf_in(folder)
    for start in range(0, numbers.size, 7):
        some = numbers[start : start + 7]
        shelf.put(some, boxes_of(some), unit_rows(600, PlainEncoder().dimensions)[some])


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_put_thirds, args=(tmp_path, third)) for third in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    numbers = np.arange(600)
    found = shelf_in(tmp_path).find(numbers, boxes_of(numbers))
    assert found.known.all()
    assert np.array_equal(found.vectors, unit_rows(600, PlainEncoder().dimensions))
