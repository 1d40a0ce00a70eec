"""The conformance check passes every shipped scorer without a model and names the rule that a broken one breaks."""

from pathlib import Path

import pytest

from pathnav.errors import PluginError
from pathnav.explore.conformance import ScorerRule
from pathnav.testing import ConformanceError, check_scorer
from support.bad_scorers import BAD_SCORERS, Sound


@pytest.mark.parametrize("name", ["random", "tissue-density", "nuclear-density"])
def test_every_shipped_scorer_without_a_model_keeps_the_contract(name: str) -> None:
    assert check_scorer(name) == tuple(ScorerRule)


def test_a_scorer_that_yields_keeps_the_contract() -> None:
    assert check_scorer(Sound) == tuple(ScorerRule)


@pytest.mark.parametrize("scorer", BAD_SCORERS, ids=lambda scorer: scorer.__name__)
def test_a_broken_scorer_fails_on_its_rule(scorer: type) -> None:
    with pytest.raises(ConformanceError) as caught:
        check_scorer(scorer)
    assert caught.value.rule is scorer.broken  # type: ignore[attr-defined]
    assert f"scorer {scorer.__name__!r} breaks the rule {caught.value.rule.value!r}: " in str(caught.value)


def test_every_rule_is_broken_by_somebody() -> None:
    assert {scorer.broken for scorer in BAD_SCORERS} == set(ScorerRule)


def test_the_oracle_is_told_nothing_here() -> None:
    with pytest.raises(PluginError, match="tumour annotation"):
        check_scorer("oracle")


def test_a_scorer_from_a_file_is_checked_with_its_options(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from pathnav.explore import Source, TileScore\n"
        "class Mine:\n"
        "    needs_pixels = False\n"
        "    def __init__(self, level): self.level = level\n"
        "    def score(self, tiles): return [TileScore(True, self.level, Source.COMPUTED) for _ in tiles]\n"
    )
    assert check_scorer(f"{path}:Mine", options={"level": 0.5}) == tuple(ScorerRule)
    with pytest.raises(PluginError, match="has no option 'height'; it has: level"):
        check_scorer(f"{path}:Mine", options={"height": 0.5})
