"""Which agent runs, with which options and which model."""

import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pathnav.errors import ConfigError, PluginError
from pathnav.localise.vlm import VlmAgent
from pathnav.plugins import Kind, Plugin, load

if TYPE_CHECKING:
    from pathnav.model import ChatSettings

_DECODING = ("temperature", "top_p", "max_tokens", "seed", "image_detail")
"""Fields of `ChatSettings` that change an answer; without a seed of its own a model is sent the episode's."""


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """An agent as chosen by a user.

    Args:
        plugin: The loaded class.
        options: Its keyword arguments.
        model: The chat endpoint it asks; None for agents that ask none.
    """

    plugin: Plugin
    options: Mapping[str, Any] = field(default_factory=dict)
    model: "ChatSettings | None" = None

    @classmethod
    def of(
        cls, agent: str | type | Plugin, options: Mapping[str, Any] | None = None, model: "ChatSettings | None" = None
    ) -> "AgentChoice":
        """Return the choice of an agent, checked by making it once.

        Args:
            agent: An installed name, `path/to/file.py:Class`, `package.module:Class`, or the class itself.
            options: Keyword arguments of the class.
            model: The chat endpoint; left out for an agent that asks none.

        Raises:
            PluginError: If there is no such agent, or it does not take the options.
            ConfigError: If an option has no legal value, or the agent needs a model and none is given.
        """
        plugin = loaded(agent)
        needs_model = uses_model(plugin)
        if needs_model and model is None:
            raise ConfigError(f"agent {plugin.name!r} asks a chat endpoint: name its model and base URL")
        choice = cls(plugin, dict(options or {}), model if needs_model else None)
        choice.create()
        return choice

    @property
    def name(self) -> str:
        """What records call it."""
        return self.plugin.name

    @property
    def version(self) -> str:
        """The version that the class declares, `"0"` where it declares none."""
        return str(getattr(self.plugin.cls, "version", "0"))

    @property
    def unbudgeted(self) -> bool:
        """Whether it may survey the region without a budget."""
        return bool(getattr(self.plugin.cls, "unbudgeted", False))

    @property
    def resumes(self) -> bool:
        """Whether it goes on from a checkpoint; any other agent starts over."""
        return issubclass(self.plugin.cls, VlmAgent)

    @property
    def is_pathnavs(self) -> bool:
        """Whether the class is part of the harness, so that what goes wrong in it is not an agent's answer."""
        return self.plugin.cls.__module__.partition(".")[0] == "pathnav"

    def create(self) -> Any:
        """Return a fresh instance.

        Raises:
            PluginError: If the class does not take the options.
            ConfigError: If an option has no legal value.
        """
        return self.plugin.create(self.options)

    @property
    def settings(self) -> dict[str, Any]:
        """Options with the defaults filled in, so that a default that is spelled out is the same setting."""
        parameters = inspect.signature(self.plugin.cls).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty and _is_json(p.default)}
        return json.loads(json.dumps({**defaults, **self.options}, default=str))  # type: ignore[no-any-return]

    def key_fields(self) -> dict[str, Any]:
        """Return all of the choice that can change a result: neither the endpoint's address, nor key, nor time-out."""
        agent, model = self.create(), self.model
        views = getattr(agent, "views", None)
        return {
            "agent": self.name,
            "version": self.version,
            "code": self.plugin.digest,
            "settings": self.settings,
            "views": dict(views.as_dict()) if views is not None else None,
            "prompts": getattr(agent, "prompt_hash", None),
            "tools": [load(Kind.TOOL, spec).digest for spec in self.settings.get("tools", ())]
            if self.resumes
            else None,
            "model": model.model if model else None,
            "decoding": self.decoding,
        }

    @property
    def decoding(self) -> dict[str, Any] | None:
        """How the model answers, None without a model."""
        if self.model is None:
            return None
        return {field: getattr(self.model, field) for field in _DECODING}


def loaded(agent: str | type | Plugin) -> Plugin:
    """Return the plug-in of an agent.

    Args:
        agent: An installed name, `path/to/file.py:Class`, `package.module:Class`, or the class itself.

    Raises:
        PluginError: If there is none, or it has no `run`.
    """
    if isinstance(agent, Plugin):
        plugin = agent
    elif isinstance(agent, type):
        plugin = plugin_of(Kind.AGENT, agent)
    else:
        plugin = load(Kind.AGENT, agent)
    if not callable(getattr(plugin.cls, "run", None)):
        raise PluginError(f"agent {plugin.name!r} has no method run(environment), which every agent has")
    return plugin


def uses_model(plugin: Plugin) -> bool:
    """Return whether an agent asks a chat endpoint."""
    return bool(getattr(plugin.cls, "uses_model", False))


def plugin_of(kind: Kind, cls: type) -> Plugin:
    """Return the plug-in of a class that a program hands over; its source, where there is one, enters the key."""
    try:
        digest = hashlib.sha256(inspect.getsource(cls).encode()).hexdigest()
    except (OSError, TypeError):  # typed in at a prompt
        digest = None
    name = getattr(cls, "name", cls.__name__)
    return Plugin(name if isinstance(name, str) else cls.__name__, kind, cls, cls.__module__, digest)


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
