"""Mode B: tiles, scorers, search policies, stored scores and hit rates.

tree = TileTree(slide, tile_px=1024)
with ScoreStore("scores.sqlite", ScorerConfiguration.of(scorer, tree.tile_px), tree.fingerprint) as store:
    found = explore(tree, scorer, [TopK(Schedule((6, 3, 2)))], store=store)
"""

from pathnav.explore.driver import Exploration, explore, replay
from pathnav.explore.hit_rates import ChoiceCounts, HitCounts, choice_counts, hit_counts, macro, micro, positives_of
from pathnav.explore.nesting import Nesting
from pathnav.explore.optimum import optimum_counts
from pathnav.explore.oracle import OracleScorer
from pathnav.explore.schedule import Schedule
from pathnav.explore.scorer import Scorer, ScorerConfiguration, Source, Tile, TileImage, TileScore
from pathnav.explore.scores import ScoreTable
from pathnav.explore.search import Choice, Policy, Selection, TopK, Wanted
from pathnav.explore.store import ScoreStore
from pathnav.explore.tiles import TileTree

__all__ = [
    "Choice",
    "ChoiceCounts",
    "Exploration",
    "HitCounts",
    "Nesting",
    "OracleScorer",
    "Policy",
    "Schedule",
    "ScoreStore",
    "ScoreTable",
    "Scorer",
    "ScorerConfiguration",
    "Selection",
    "Source",
    "Tile",
    "TileImage",
    "TileScore",
    "TileTree",
    "TopK",
    "Wanted",
    "choice_counts",
    "explore",
    "hit_counts",
    "macro",
    "micro",
    "optimum_counts",
    "positives_of",
    "replay",
]
