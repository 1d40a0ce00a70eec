"""What `pathnav explore` refuses: one sentence, exit code 2, nothing written."""

import json

import pytest

from support.chat_server import Answer, ChatServer, say
from support.commands import Bench, Command
from support.exploring import Exploring, polygon, write_annotation


@pytest.fixture
def exploring(bench: Bench) -> Exploring:
    return Exploring(bench)


WRONG: list[tuple[tuple[object, ...], str]] = [
    (("--scorer", "oracle"), "the oracle needs a slide with a tumour annotation; give --annotation"),
    (("--scorer", "randm"), "did you mean random"),
    (("--scorer", "random", "--schedule", "6,3"), "a K for each of 2.5x, 10x and 40x"),
    (("--scorer", "random", "--schedule", "6,0,2"), "whole numbers of at least 1"),
    (("--scorer", "random", "--schedule", "a,b,c"), "three whole numbers"),
    (("--scorer", "random", "--tile-px", 0), "tile_px must be a whole number from 1 to 16,384"),
    (("--scorer", "random", "--tile-px", 100_000_000), "tile_px must be a whole number from 1 to 16,384"),
    (("--scorer", "random", "--geojson", "a.geojson"), "a.geojson exists: name another file, or give --force"),
    (("--scorer", "random", "--min-tissue", 2), "min_tissue must be in [0, 1]"),
    (("--scorer", "random", "--concurrency", 0), "concurrency must be a whole number of at least 1"),
    (("--scorer", "random", "--seed", -1), "seed must be a whole number of 0 or more"),
    (("--scorer", "random", "--tumour-class", "tumor"), "--tumour-class names a class of an annotation"),
    (("--scorer", "random", "--model", "m", "--base-url", "http://127.0.0.1:1/v1"), "asks no model"),
    (("--scorer", "random", "--scorer-option", "seeds=1"), "scorer 'random' has no option 'seeds'; it has: seed"),
    (("--scorer", "random", "--target-text", "mitoses"), "scorer 'random' has no option 'target_text'; it has: seed"),
    (
        ("--scorer", "tissue-density", "--prompt", "a.txt"),
        "scorer 'tissue-density' has no option 'prompt'; it has none",
    ),
    (("--scorer", "random", "--relative-to-bounds"), "give --annotation or --geojson"),
    (("--scorer", "random", "--schedule", "0,0,0"), "whole numbers of at least 1"),
    (("--scorer", "random", "--schedule", "abc"), "three whole numbers"),
    (("--scorer", "random", "--concurrency", 10**9), "concurrency must be at most 1,024"),
    (("--scorer", ""), "there is no scorer named ''"),
    (("--scorer", "random", "--out", ""), "expected the name of a folder, got an empty text"),
    (("--scorer", "random", "--geojson", "kept.png"), "--geojson writes GeoJSON files"),
    (("--scorer", "random", "--geojson", "/no/such/kept.geojson"), "the folder /no/such does not exist"),
]


@pytest.mark.parametrize(
    ("more", "says"), WRONG, ids=lambda part: " ".join(map(str, part)) if type(part) is tuple else ""
)
def test_bad_options_are_one_sentence(
    pathnav: Command, exploring: Exploring, more: tuple[object, ...], says: str
) -> None:
    before = exploring.bench.files()
    said = pathnav(*exploring.plain(*more))
    assert (said.code, said.out) == (2, "")
    (sentence,) = said.sentences
    assert says in sentence
    assert exploring.bench.files() == before


@pytest.mark.parametrize(
    "more", [more for more, _ in WRONG if "--out" not in more], ids=lambda more: " ".join(map(str, more))
)
def test_what_is_refused_leaves_no_folder(pathnav: Command, exploring: Exploring, more: tuple[object, ...]) -> None:
    before = exploring.bench.files()
    assert pathnav(*exploring.plain("--out", "new/run", *more)).code == 2
    assert exploring.bench.files() == before


@pytest.mark.parametrize(
    ("content", "tumour", "says"),
    [
        ('{"type": "FeatureCollection", "features": [', "tumor", "is neither JSON nor XML"),
        ('{"hello": 1}', "tumor", "expected QuPath GeoJSON"),
        ('{"type": "FeatureCollection", "features": []}', "tumor", "holds no closed region"),
        (None, "tumour", "tumor"),
    ],
)
def test_bad_annotation_files_are_one_sentence(
    pathnav: Command, exploring: Exploring, content: str | None, tumour: str, says: str
) -> None:
    path = exploring.annotation
    if content is not None:
        path.write_text(content)
    said = pathnav(*exploring.plain("--scorer", "random", "--annotation", path, "--tumour-class", tumour))
    assert (said.code, said.out) == (2, "")
    (sentence,) = said.sentences
    assert says in sentence
    assert str(path) in sentence


def test_points_alone_are_no_tumour(pathnav: Command, exploring: Exploring) -> None:
    point = polygon(0, 0, 1, 1) | {"geometry": {"type": "Point", "coordinates": [5, 5]}}
    path = write_annotation(exploring.annotation, point)
    said = pathnav(*exploring.plain("--scorer", "random", "--annotation", path, "--tumour-class", "tumor"))
    assert said.code == 2
    assert "holds no closed region, only 1 point" in said.err


def test_an_annotation_of_another_slide_is_refused_or_warned_of(pathnav: Command, exploring: Exploring) -> None:
    command = exploring.annotated("--scorer", "random")
    write_annotation(exploring.annotation, polygon(50_000, 50_000, 700, 500))
    said = pathnav(*command)
    assert said.code == 2
    assert "lies outside the scanned area" in said.err
    write_annotation(exploring.annotation, polygon(100, 100, 700, 500), polygon(50_000, 50_000, 700, 500))
    said = pathnav(*command)
    assert said.code == 0
    assert "warning: 50.0% of the tumour" in said.err


def test_a_slide_without_tumour_is_warned_of_a_file_of_another_slide(pathnav: Command, exploring: Exploring) -> None:
    vertices = [[50_000, 50_000], [51_000, 50_000], [51_000, 51_000]]
    exploring.annotation.write_text(json.dumps({"negative": [{"name": "_0", "vertices": vertices}]}))
    said = pathnav(*exploring.plain("--scorer", "random", "--annotation", exploring.annotation))
    assert said.code == 0
    (line,) = [line for line in said.sentences if line.startswith("warning")]
    assert "100.0% of what is no tumour" in line and line.endswith("is it of another slide or scan?")


def test_a_result_that_means_nothing_is_warned_of(pathnav: Command, exploring: Exploring) -> None:
    said = pathnav(*exploring.plain("--scorer", "random", "--min-tissue", "1"))
    assert said.code == 0 and "warning: no tile at 2.5x has enough tissue" in said.err
    write_annotation(exploring.annotation, polygon(10, 10, 0.5, 0.5))
    said = pathnav(*exploring.annotated("--scorer", "random"))
    assert said.code == 0 and "covers more than 5 % of no tile" in said.err
    with ChatServer(lambda request: say("The weather is lovely.")) as server:
        said = pathnav(*exploring.plain("--schedule", "1,1,1", "--model", "m", "--base-url", server.base_url))
    assert said.code == 0 and "could not be read as Yes or No, and no tile was kept" in said.err


def test_tiles_that_are_too_many_are_refused_before_anything_is_written(
    pathnav: Command, exploring: Exploring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathnav.explore.tiles.MAX_TILES", 100)
    out = exploring.bench.folder / "out"
    said = pathnav(*exploring.plain("--scorer", "random", "--out", out))
    assert said.code == 2
    assert "more than 100; take a larger" in said.err
    assert not out.exists()


def test_bytes_that_are_no_text_are_no_chat_completion(pathnav: Command, exploring: Exploring) -> None:
    with ChatServer(lambda request: Answer(body=b"\x00\xff{{{")) as server:
        said = pathnav(*exploring.plain("--schedule", "1,1,1", "--model", "m", "--base-url", server.base_url))
    assert said.code == 1
    assert "answered HTTP 200 with something that is not a chat completion" in said.err
