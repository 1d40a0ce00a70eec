"""A scorer that breaks its contract: one sentence that names it and its file, and nothing wrong is stored."""

import json
from pathlib import Path

import pytest
import yaml

from support.commands import Bench, Command
from support.exploring import Exploring
from support.scores import score_rows

SCORERS = '''
import numpy as np

from pathnav.errors import ModelError
from pathnav.explore import Source, TileScore

GOOD = TileScore(True, 0.5, Source.COMPUTED)


class Nothing:
    def score(self, tiles):
        for tile in tiles:
            tile.tissue_share


class OneTooFew:
    def score(self, tiles):
        return [GOOD] * (len(tiles) - 1)


class OneTooMany:
    def score(self, tiles):
        yield from [GOOD] * (len(tiles) + 1)


class NotANumber:
    def score(self, tiles):
        return [TileScore(True, float("nan"), Source.COMPUTED) for _ in tiles]


class TooSure:
    def score(self, tiles):
        return [TileScore(True, 73, Source.COMPUTED) for _ in tiles]


class InWords:
    def score(self, tiles):
        return [TileScore("yes", 0.5, Source.COMPUTED) for _ in tiles]


class OfItsOwnSource:
    def score(self, tiles):
        return [TileScore(True, 0.5, "felt") for _ in tiles]


class Numbers:
    def score(self, tiles):
        return [0.5 for _ in tiles]


class Raises:
    def score(self, tiles):
        raise KeyError("stain\\nmatrix")


class Leaves:
    def score(self, tiles):
        raise SystemExit(3)


class WantsMore:
    def score(self, tiles, slide):
        return []


class KeepsAnObject:
    def score(self, tiles):
        return [TileScore(True, 0.5, Source.COMPUTED, detail={"tile": object()}) for _ in tiles]


class TwiceTheSame:
    def score(self, tiles):
        return [GOOD for _ in tiles]

    def score_as_ready(self, tiles):
        for _ in tiles:
            yield 0, GOOD


class WithoutPlaces:
    def score(self, tiles):
        return [GOOD for _ in tiles]

    def score_as_ready(self, tiles):
        yield from self.score(tiles)


class FailsLater:
    """Breaks at 40x, after two levels have been scored."""

    def score(self, tiles):
        if tiles[0].magnification == 40:
            raise ValueError("no focus")
        return [GOOD for _ in tiles]


class LosesItsModel:
    def score(self, tiles):
        raise ModelError("the endpoint has gone")


class CannotBeMade:
    def __init__(self):
        open("/no/such/weights.bin")

    def score(self, tiles):
        return [GOOD for _ in tiles]


class HidesItsSettings(CannotBeMade):
    def __init__(self):
        pass

    @property
    def settings(self):
        raise RuntimeError("boom")


class OfNumPy:
    """No breach: NumPy's numbers are numbers."""

    def score(self, tiles):
        return [TileScore(np.bool_(True), np.float32(0.5), "computed", np.int64(1)) for _ in tiles]
'''

EVERY = "must give a TileScore for each tile, but"
BREACHES = [
    ("Nothing", f"{EVERY} returned None, which holds no scores"),
    ("OneTooFew", f"{EVERY} gave 3 scores for 4 tiles"),
    ("NotANumber", f"{EVERY} raised ValueError: a confidence must be in [0, 1], got nan"),
    ("TooSure", f"{EVERY} raised ValueError: a confidence must be in [0, 1], got 73.0"),
    ("InWords", f"{EVERY} raised ValueError: yes must be True, False or None, got 'yes'"),
    ("OfItsOwnSource", f"{EVERY} raised ValueError: source must be one of logprobs, stated, word, computed"),
    ("Numbers", "must give a TileScore for each tile, got float"),
    ("Raises", f"{EVERY} raised KeyError: 'stain\\nmatrix'"),
    ("Leaves", f"{EVERY} raised SystemExit: 3"),
    ("WantsMore", f"{EVERY} raised TypeError: WantsMore.score() missing 1 required positional argument: 'slide'"),
    ("KeepsAnObject", "must give a detail that has a JSON form: Object of type object is not JSON serializable"),
    ("WithoutPlaces", "must yield pairs of a tile's place and its TileScore, got TileScore"),
]


@pytest.fixture
def exploring(bench: Bench) -> Exploring:
    (bench.folder / "mine.py").write_text(SCORERS, encoding="utf-8")
    return Exploring(bench)


def mine(exploring: Exploring, name: str) -> str:
    return f"{exploring.bench.folder / 'mine.py'}:{name}"


@pytest.mark.parametrize(("name", "says"), BREACHES)
def test_a_scorer_that_breaks_its_contract_at_once_is_bad_input(
    pathnav: Command, exploring: Exploring, name: str, says: str
) -> None:
    before = exploring.bench.files()
    said = pathnav(*exploring.plain("--scorer", mine(exploring, name), "--out", exploring.bench.folder / "out"))
    assert (said.code, said.out) == (2, "")
    sentence = said.sentences[-1]
    assert f"scorer {name!r} ({exploring.bench.folder / 'mine.py'}) {says}" in sentence
    assert exploring.bench.files() == before


@pytest.mark.parametrize(
    ("name", "says"),
    [("CannotBeMade", "cannot be made: FileNotFoundError"), ("HidesItsSettings", "RuntimeError: boom")],
)
def test_a_scorer_that_fails_before_it_is_asked_is_bad_input(
    pathnav: Command, exploring: Exploring, name: str, says: str
) -> None:
    before = exploring.bench.files()
    said = pathnav(*exploring.plain("--scorer", mine(exploring, name), "--out", exploring.bench.folder / "out"))
    assert (said.code, said.out) == (2, "")
    assert f"scorer {name!r}" in said.sentences[-1] and says in said.sentences[-1]
    assert exploring.bench.files() == before


def test_a_search_that_is_lost_replaces_no_tiles_of_an_earlier_one(pathnav: Command, exploring: Exploring) -> None:
    kept = exploring.bench.folder / "kept.geojson"
    assert pathnav(*exploring.plain("--scorer", "random", "--geojson", kept)).code == 0
    before = kept.read_bytes()
    said = pathnav(*exploring.plain("--scorer", mine(exploring, "LosesItsModel"), "--geojson", kept, "--force"))
    assert said.code == 1 and kept.read_bytes() == before
    kept.unlink()
    assert pathnav(*exploring.plain("--scorer", mine(exploring, "LosesItsModel"), "--geojson", kept)).code == 1
    assert not kept.exists()


def test_a_folder_of_an_earlier_search_stays_as_it_was(pathnav: Command, exploring: Exploring) -> None:
    out = exploring.bench.folder / "out"
    assert pathnav(*exploring.plain("--scorer", "random", "--out", out)).code == 0
    before = {path: path.read_bytes() for path in out.glob("episodes/*/*.json")}
    assert pathnav(*exploring.plain("--scorer", mine(exploring, "Numbers"), "--out", out)).code == 2
    assert {path: path.read_bytes() for path in out.glob("episodes/*/*.json")} == before
    assert stored(out, "Numbers") == 0


@pytest.mark.parametrize(("name", "says"), [("OneTooMany", "gave 5 scores for 4 tiles"), ("TwiceTheSame", "twice")])
def test_scores_before_the_breach_of_an_iterator_are_recorded(
    pathnav: Command, exploring: Exploring, name: str, says: str
) -> None:
    out = exploring.bench.folder / "out"
    said = pathnav(*exploring.plain("--scorer", mine(exploring, name), "--out", out))
    assert said.code == 1
    assert says in said.err
    assert stored(out, name) in (1, 4)


def test_a_breach_after_scores_have_come_is_recorded_with_them(pathnav: Command, exploring: Exploring) -> None:
    out = exploring.bench.folder / "out"
    said = pathnav(*exploring.plain("--scorer", mine(exploring, "FailsLater"), "--out", out, "--json"))
    found = json.loads(said.out)
    assert (said.code, found["outcome"]) == (1, "infra_error")
    assert f"scorer 'FailsLater' ({exploring.bench.folder / 'mine.py'}) {EVERY} raised ValueError: no focus" in said.err
    before = stored(out, "FailsLater")
    assert before > 4
    again = pathnav(*exploring.plain("--scorer", mine(exploring, "FailsLater"), "--out", out))
    assert again.code == 2, "nothing more can be scored, and that is the scorer's fault"
    assert stored(out, "FailsLater") == before


def test_a_lost_endpoint_is_no_breach(pathnav: Command, exploring: Exploring) -> None:
    said = pathnav(*exploring.plain("--scorer", mine(exploring, "LosesItsModel"), "--json"))
    assert (said.code, json.loads(said.out)["outcome"]) == (1, "infra_error")
    assert "the search did not come to its end: the endpoint has gone" in said.err


def test_numbers_of_numpy_are_no_breach(pathnav: Command, exploring: Exploring) -> None:
    out = exploring.bench.folder / "out"
    assert pathnav(*exploring.plain("--scorer", mine(exploring, "OfNumPy"), "--out", out)).code == 0
    assert stored(out, "OfNumPy") > 4


def stored(out: Path, name: str) -> int:
    return len(score_rows(out, scorer=name))


def test_in_a_scenario_the_other_searches_go_on(pathnav: Command, exploring: Exploring) -> None:
    slide = {"path": str(exploring.bench.slide), "annotation": str(exploring.annotation), "tumour_classes": ["tumor"]}
    scorers = [mine(exploring, "Numbers"), mine(exploring, "Raises"), "random"]
    path, out = exploring.bench.folder / "b.yaml", exploring.bench.folder / "out"
    document = {
        "format": "pathnav-scenario-1",
        "cohort": {"slides": [slide]},
        "explore": {"scorers": scorers, "tile_px": 64, "min_tissue": 0},
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    assert pathnav("run", path, "--out", out).code == 1
    records = {
        one["scorer"]: one for one in map(json.loads, (p.read_text() for p in out.glob("episodes/*/result.json")))
    }
    assert {name: one["outcome"] for name, one in records.items()} == {
        "Numbers": "infra_error",
        "Raises": "infra_error",
        "random": "finished",
    }
    assert "got float" in records["Numbers"]["reason"]
    assert str(exploring.bench.folder / "mine.py") in records["Raises"]["reason"]
    assert stored(out, "Numbers") == stored(out, "Raises") == 0
