"""The agent that lets a vision-language model navigate."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pathnav.cohort.protocol import FORCED_TRIES, JPEG_QUALITY, VIEW_LIMIT_PX, max_steps
from pathnav.errors import ConfigError
from pathnav.localise import prompts
from pathnav.localise.agent import HINT_COUNT, Hints
from pathnav.localise.coordinates import Coordinates
from pathnav.localise.environment import Environment
from pathnav.localise.graph import Nodes, build_graph, first_state
from pathnav.localise.outcome import Outcome
from pathnav.localise.tool import DEFAULT_TOOLS, OfferedTools, Tool, function_schema, load_tools
from pathnav.localise.views import ViewSettings


class VlmAgent:
    """Ask a chat endpoint for tool calls until it reports.

    Args:
        guides: Whether images carry ticks with level-0 coordinates.
        view_px: Limit of an image's long side in pixels.
        jpeg_quality: 1 to 95.
        tools: Further tools beside the paper's three, as `file.py:Class` or installed names.
        hints: An agent that proposes windows to start from, by name or as `{name: options}`; `clip` is
            `clip-retrieval`. The row is then marked as unbudgeted, for the region was surveyed.
        hint_count: How many windows it proposes; 3 where left out.

    Raises:
        ConfigError: If an option has no legal value.
        PluginError: If a tool or the agent that gives hints cannot be loaded.
    """

    name = "vlm"
    version = "1"
    uses_model = True
    unbudgeted = False

    def __init__(
        self,
        guides: bool = True,
        view_px: int = VIEW_LIMIT_PX,
        jpeg_quality: int = JPEG_QUALITY,
        tools: Sequence[str] = (),
        *,
        hints: str | Mapping[str, Any] | None = None,
        hint_count: int | None = None,
    ) -> None:
        self.views = ViewSettings(view_px=view_px, guides=guides, jpeg_quality=jpeg_quality)
        self._tools: Mapping[str, Tool] = load_tools([*DEFAULT_TOOLS, *tools])
        if hints is None and hint_count is not None:
            raise ConfigError(
                f"hint_count, got {hint_count}, says how many hints there are; name who gives them: hints"
            )
        count = HINT_COUNT if hint_count is None else hint_count
        self._hints = Hints(hints, count) if hints is not None else None
        self.unbudgeted = self._hints is not None  # the region is surveyed for hints alone, never by the model

    @property
    def settings(self) -> dict[str, Any]:
        """What can change an answer, beside views, prompts and tools, which enter the key on their own."""
        views = self.views
        shown = {"guides": views.guides, "view_px": views.view_px, "jpeg_quality": views.jpeg_quality}
        return {**shown, "hints": self._hints.settings} if self._hints is not None else shown

    @property
    def prompt_hash(self) -> str:
        """SHA-256 of the prompts and of the tools' descriptions and schemas; part of the episode's key."""
        schemas = json.dumps([function_schema(tool) for tool in self._tools.values()], sort_keys=True)
        return hashlib.sha256((prompts.prompt_hash(with_hints=self._hints is not None) + schemas).encode()).hexdigest()

    def run(self, environment: Environment) -> Outcome:
        """Navigate until a report, or until the episode's end; no reply that is on record is asked for again.

        Raises:
            ConfigError: If the environment has no chat endpoint.
            ModelError: If the endpoint fails for good.
        """
        if environment.chat is None:
            raise ConfigError("the vlm agent needs a chat endpoint", remedy="give --model and --base-url")
        tools = OfferedTools(self._tools, Coordinates.of(environment.chat.settings.profile))
        hints = [one.box for one in self._hints.given(environment)] if self._hints is not None else []
        return _navigated(Nodes(environment, environment.chat, tools, hints))


def _navigated(nodes: Nodes) -> Outcome:
    """Run the graph to its end and return how the episode ended."""
    from langgraph.errors import GraphRecursionError

    # A fuse: each turn is two super-steps and takes at least one step of the episode, forced turns included.
    turns = max_steps(nodes.environment.budget) + FORCED_TRIES
    try:
        ended = build_graph(nodes).invoke(first_state(), {"recursion_limit": 2 * turns + 4})
    except GraphRecursionError:
        return Outcome.STEP_LIMIT
    return Outcome(ended["ending"])
