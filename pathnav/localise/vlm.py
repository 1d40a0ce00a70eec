"""The agent that lets a vision-language model navigate."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pathnav.cohort.protocol import FORCED_TRIES, JPEG_QUALITY, VIEW_LIMIT_PX, max_steps
from pathnav.errors import ConfigError
from pathnav.localise import prompts
from pathnav.localise.conversation import Conversation
from pathnav.localise.coordinates import Coordinates
from pathnav.localise.environment import Environment
from pathnav.localise.faces import Faces
from pathnav.localise.graph import Nodes, build_graph
from pathnav.localise.outcome import Outcome
from pathnav.localise.state import EpisodeState, first_state, outcome_of, restore
from pathnav.localise.tool import DEFAULT_TOOLS, Tool, function_schema, load_tools
from pathnav.localise.views import ViewSettings

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

_THREAD = "episode"


class VlmAgent:
    """Ask a chat endpoint for tool calls until it reports.

    Args:
        guides: Whether images carry ticks with level-0 coordinates.
        view_px: Limit of an image's long side in pixels.
        jpeg_quality: 1 to 95.
        tools: Further tools beside the paper's three, as `file.py:Class` or installed names.

    Raises:
        ConfigError: If an option has no legal value.
        PluginError: If a tool cannot be loaded.
    """

    name = "vlm"
    version = "1"
    uses_model = True

    def __init__(
        self,
        guides: bool = True,
        view_px: int = VIEW_LIMIT_PX,
        jpeg_quality: int = JPEG_QUALITY,
        tools: Sequence[str] = (),
    ) -> None:
        self.views = ViewSettings(view_px=view_px, guides=guides, jpeg_quality=jpeg_quality)
        self._tools: Mapping[str, Tool] = load_tools([*DEFAULT_TOOLS, *tools])

    @property
    def prompt_hash(self) -> str:
        """SHA-256 of the prompts and of the tools' descriptions and schemas; part of the episode's key."""
        schemas = json.dumps([function_schema(tool) for tool in self._tools.values()], sort_keys=True)
        return hashlib.sha256((prompts.prompt_hash() + schemas).encode()).hexdigest()

    def run(self, environment: Environment) -> Outcome:
        """Navigate until a report, or until the episode's end; resumes from the environment's checkpoint.

        Raises:
            ConfigError: If the environment has no chat endpoint.
            ModelError: If the endpoint fails for good.
        """
        if environment.chat is None:
            raise ConfigError("the vlm agent needs a chat endpoint: give --model and --base-url")
        client = environment.chat.client
        faces = Faces(self._tools, Coordinates.of(client.settings.profile))
        nodes = Nodes(environment, Conversation(client, environment.recorder), faces)
        return _run_graph(nodes)


def _run_graph(nodes: Nodes) -> Outcome:
    """Run the graph to its end, from the checkpoint where there is one."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.errors import GraphRecursionError

    from pathnav.localise.checkpoint import open_checkpoint

    path = nodes.environment.checkpoint
    try:
        if path is None:
            state = _finish(build_graph(nodes, InMemorySaver()), nodes.environment)
        else:
            with open_checkpoint(path) as saver:
                state = _finish(build_graph(nodes, saver), nodes.environment)
    except GraphRecursionError:
        return Outcome.STEP_LIMIT
    restore(nodes.environment, state)
    return outcome_of(state)


def _finish(graph: Any, environment: Environment) -> EpisodeState:
    """Return the final state of a graph that is started, resumed, or already at its end."""
    # Each turn is two super-steps and takes at least one step of the episode, forced turns included.
    turns = max_steps(environment.budget) + FORCED_TRIES
    config: RunnableConfig = {"configurable": {"thread_id": _THREAD}, "recursion_limit": 2 * turns + 4}
    before = graph.get_state(config)
    # After a kill between a node's saved writes and the next checkpoint `next` is empty as at the end, `tasks` is not.
    if before.values and not before.tasks:
        ended: EpisodeState = before.values
        return ended
    start = None if before.tasks else first_state()
    state: EpisodeState = graph.invoke(start, config, durability="sync")
    return state
