"""The most that episodes and searches can ask for: ROIs, requests, tokens, money. What nobody can say is None.

Requests, ROIs and tiles are bounds that no run exceeds. Tokens are bounds on top of estimates (`image_tokens.py`):
servers count images and words in their own ways. Tries that fail and are repeated are not in any of them.
"""

import functools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pathnav.cohort.protocol import FORCED_TRIES, max_steps
from pathnav.localise.vlm import VlmAgent
from pathnav.model.image_tokens import Growth, conversation_tokens, image_tokens, input_tokens, text_tokens
from pathnav.model.prices import Prices
from pathnav.run.exploration import Search
from pathnav.run.exploration_result import shown_tile_px
from pathnav.run.plan import Episode

if TYPE_CHECKING:
    from pathnav.explore.nesting import Nesting, Numbers
    from pathnav.explore.scores import Flags
    from pathnav.model import ChatSettings

REPLY_CHARACTERS = 1500
"""Of what a turn is answered with: the facts of a slide with ten levels take 1,000, a refusal with its advice less."""

SHORT_TURN_TOKENS = 200
"""Of one look with its reason, 100, and of the text beside its image: for a warning that is no false alarm."""

_ASKED_TWICE = 2  # a tile whose answer cannot be read is asked for once more


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that something asks for; `a + b` adds, and what is not known stays so.

    Args:
        rois: ROIs looked at.
        tiles: Tiles scored.
        calls: Answered requests to a model.
        tokens_in: Tokens of the requests.
        tokens_out: Tokens of the answers.
        cost_usd: What they cost.
        unknown: Why something is not known, one sentence each.
    """

    rois: int = 0
    tiles: int = 0
    calls: int | None = 0
    tokens_in: int | None = 0
    tokens_out: int | None = 0
    cost_usd: float | None = 0.0
    unknown: tuple[str, ...] = ()

    def __add__(self, other: "Bound") -> "Bound":
        return Bound(
            self.rois + other.rois,
            self.tiles + other.tiles,
            _sum(self.calls, other.calls),
            _sum(self.tokens_in, other.tokens_in),
            _sum(self.tokens_out, other.tokens_out),
            None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd,
            tuple(dict.fromkeys((*self.unknown, *other.unknown))),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the bound as plain JSON."""
        tokens = {"input": self.tokens_in, "output": self.tokens_out} if self.tokens_in is not None else None
        cost = {"cost_usd": self.cost_usd, "unknown": list(self.unknown)}
        return {"rois": self.rois, "tiles": self.tiles, "calls": self.calls, "tokens": tokens, **cost}


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def total(bounds: Iterable[Bound]) -> Bound:
    """Return the sum of bounds."""
    return functools.reduce(lambda first, second: first + second, bounds, Bound())


@dataclass(frozen=True, slots=True)
class Conversation:
    """How long the conversation of an episode may get, in tokens.

    Args:
        short: If every turn is one look, shortly answered.
        longest: If every turn is used and every answer is as long as it may be.
        context: What the model's context holds, None where the profile does not say.
    """

    short: int
    longest: int
    context: int | None


def conversation(episode: Episode) -> Conversation | None:
    """Return how long an episode's conversation may get; None for an agent that asks no model, or in its own way."""
    model, budget = episode.agent.model, episode.case.query.budget
    if model is None or not _is_vlm(episode):
        return None
    short = conversation_tokens(_growth(episode, model, SHORT_TURN_TOKENS), budget + 1)
    longest = conversation_tokens(_growth(episode, model, _turn_tokens(model)), _turns(budget))
    return Conversation(short, longest, model.profile.context_tokens)


def episode_bound(episode: Episode) -> Bound:
    """Return the most that an episode asks for."""
    model, budget = episode.agent.model, episode.case.query.budget
    if model is None:
        return Bound(rois=budget)
    if not _is_vlm(episode):
        return _unknown(f"{episode.agent.name} decides by itself how often it asks its model", rois=budget)
    turns = _turns(budget)
    tokens = input_tokens(_growth(episode, model, _turn_tokens(model)), turns), turns * model.max_tokens
    return _priced(Bound(rois=budget, calls=turns), tokens, model, episode.prices)


def search_bound(search: Search, tiles: int) -> Bound:
    """Return the most that a search asks for, which scores so many tiles at most."""
    from pathnav.explore.vlm import VlmScorer

    model = search.scorer.model
    if model is None:
        return Bound(tiles=tiles)
    if not issubclass(search.scorer.plugin.cls, VlmScorer):
        return _unknown(f"scorer {search.scorer.name} decides by itself how often it asks its model", tiles=tiles)
    side_px = shown_tile_px(search.tiles.tile_px)
    question = _question_tokens(search) + image_tokens(side_px, side_px, model.profile.pixels_per_token)
    calls = _ASKED_TWICE * tiles
    # the second question holds the first one, its answer of any length, and the request to answer again
    tokens = tiles * (2 * question + model.max_tokens + text_tokens(REPLY_CHARACTERS)), calls * model.max_tokens
    return _priced(Bound(tiles=tiles, calls=calls), tokens, model, search.prices)


def most_tiles(nesting: "Nesting", eligible: "Sequence[Flags]", keeps: Sequence[tuple[int, ...]]) -> int:
    """Return the most tiles that schedules together need scores of: all at the first level, then children of kept ones.

    The tiles that a schedule keeps are among those of one that keeps more: the places of a ranking are counted once.

    Args:
        nesting: The slide's three grids.
        eligible: Per level bool, shape (count,): the tiles that are shown to a scorer.
        keeps: K by level of each schedule.
    """
    if not keeps:
        return 0
    first, second, third = (flags.astype(np.int64) for flags in eligible)
    children = nesting.by_parent(1, second).sum(axis=1)[eligible[0]]
    below = nesting.by_parent(2, third).sum(axis=1) * second
    best_first = -np.sort(-nesting.by_parent(1, below), axis=1)[eligible[0]]
    places = min(max(keep[0] for keep in keeps), len(children))
    found = int(first.sum()) + _largest(children, places)
    # at each place of the ranking at 2.5x the largest K at 10x of a schedule that keeps so many
    at_place = [max(keep[1] for keep in keeps if keep[0] > place) for place in range(places)]
    for k in sorted(set(at_place)):
        found += _largest(best_first[:, :k].sum(axis=1), at_place.count(k))
    return found


def _largest(counts: "Numbers", number: int) -> int:
    """Return the sum of the largest counts."""
    return int(np.sort(counts)[::-1][:number].sum())


def _turns(budget: int) -> int:
    """Return the most requests of an episode: every turn takes a step, and the forced tries may come on top."""
    return max_steps(budget) + FORCED_TRIES


def _turn_tokens(model: "ChatSettings") -> int:
    """Return the tokens that the longest turn adds: an answer, which stays in the conversation, and its reply."""
    return model.max_tokens + text_tokens(REPLY_CHARACTERS)


def _is_vlm(episode: Episode) -> bool:
    cls = episode.agent.plugin.cls
    return issubclass(cls, VlmAgent) and cls.run is VlmAgent.run


def _growth(episode: Episode, model: "ChatSettings", per_turn: int) -> Growth:
    query, profile = episode.case.query, model.profile
    view_px = episode.agent.key_fields["views"]["view_px"]
    return Growth(
        start=text_tokens(_opening_characters(model, tuple(episode.agent.options.get("tools", ()))))
        + text_tokens(len(query.finding)),
        per_turn=per_turn,
        per_image=image_tokens(view_px, view_px, profile.pixels_per_token),
        images=1 + query.budget,
        images_live=profile.most_images,
    )


@functools.cache
def _opening_characters(model: "ChatSettings", tools: tuple[str, ...]) -> int:
    """Return the characters of what every request begins with: prompts, the task without its finding, the tools."""
    from pathnav.localise import prompts
    from pathnav.localise.coordinates import Coordinates
    from pathnav.localise.tool import DEFAULT_TOOLS, OfferedTools, load_tools
    from pathnav.model.profile import ToolCalling
    from pathnav.model.text_tools import text_messages

    offered = OfferedTools(load_tools([*DEFAULT_TOOLS, *tools]), Coordinates.of(model.profile))
    system, schemas = prompts.system(offered.coordinates), offered.schemas()
    task = len(prompts.text("task")) + len(prompts.text("forced")) + REPLY_CHARACTERS  # what is filled in, the caption
    if model.profile.tools is ToolCalling.TEXT:
        messages = text_messages([{"role": "system", "content": system}], schemas)
        return task + sum(len(str(message["content"])) for message in messages)
    return task + len(system) + len(json.dumps(schemas))


def _question_tokens(search: Search) -> int:
    """Return the tokens of a scorer's question without its image."""
    from pathnav.explore.prompts import Prompt

    prompt = Prompt.of(search.scorer.options.get("prompt"))
    return text_tokens(len(prompt.question(search.scorer.settings["target_text"], 2.5)))


def _unknown(why: str, **known: int) -> Bound:
    return Bound(**known, calls=None, tokens_in=None, tokens_out=None, cost_usd=None, unknown=(why,))


def _priced(bound: Bound, tokens: tuple[int, int], model: "ChatSettings", prices: Prices) -> Bound:
    usd = prices.usd(model.model, *tokens)
    unknown = () if usd is not None else (f"no price for {model.model}",)
    return Bound(bound.rois, bound.tiles, bound.calls, *tokens, usd, unknown)
