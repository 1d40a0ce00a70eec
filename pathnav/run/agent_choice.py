"""Which agent runs, with which options and which model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pathnav.errors import ConfigError, PluginError
from pathnav.localise.vlm import VlmAgent
from pathnav.plugins import Kind, Plugin, load
from pathnav.run.key import hashed
from pathnav.run.plugin_identity import code_of, package_of, resolved, settings_of, uses_model

if TYPE_CHECKING:
    from pathnav.model import ChatSettings


@dataclass(frozen=True)
class AgentChoice:
    """An agent as chosen by a user.

    Of a `file.py:Class` the key holds the digest of that one file. A helper module that the file imports is not part
    of it: change `version`, or the file, when the helper changes. Of an installed agent the key holds its package's
    version, not its code.

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
        _ = choice._planned
        return choice

    @cached_property
    def _planned(self) -> Any:
        """An instance that tells what it declares, and never runs."""
        return self.create()

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
        return bool(getattr(self._planned, "unbudgeted", False))

    @property
    def resumes(self) -> bool:
        """Whether it takes replies from the record of an earlier attempt; any other agent starts over."""
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
        return settings_of(self.plugin, self.options)

    @cached_property
    def key_fields(self) -> dict[str, Any]:
        """All of the choice that can change a result: neither the endpoint's address, nor key, nor time-out."""
        agent, model = self._planned, self.model
        views = getattr(agent, "views", None)
        tools = self.settings.get("tools", ()) if self.resumes else None
        return {
            "agent": self.name,
            "version": self.version,
            "origin": package_of(self.plugin),
            "code": code_of(self.plugin),
            "settings": _declared(agent) if hasattr(type(agent), "settings") else self.settings,
            "views": dict(views.as_dict()) if views is not None else None,
            "prompts": getattr(agent, "prompt_hash", None),
            "tools": [_identity(load(Kind.TOOL, spec)) for spec in tools] if tools is not None else None,
            "model": model.model if model else None,
            "decoding": self.decoding,
        }

    @property
    def configuration(self) -> str:
        """A hash of `key_fields`: results of different agents, code, settings or models are never averaged."""
        return hashed(self.key_fields)

    @property
    def secret(self) -> str | None:
        """The endpoint's key, which may stand in no file; None where there is none."""
        return self.model.api_key if self.model else None

    @property
    def decoding(self) -> dict[str, Any] | None:
        """How the model answers, None without a model."""
        return None if self.model is None else self.model.decoding


def loaded(agent: str | type | Plugin) -> Plugin:
    """Return the plug-in of an agent.

    Args:
        agent: An installed name, `path/to/file.py:Class`, `package.module:Class`, or the class itself.

    Raises:
        PluginError: If there is none, or it has no `run`.
    """
    plugin = resolved(Kind.AGENT, agent)
    if not callable(getattr(plugin.cls, "run", None)):
        raise PluginError(f"agent {plugin.name!r} has no method run(environment), which every agent has")
    return plugin


def _declared(agent: Any) -> dict[str, Any]:
    """Return what an agent says of itself that can change its answers, in place of its options.

    Raises:
        PluginError: If that has no JSON form.
    """
    try:
        return json.loads(json.dumps(dict(agent.settings), allow_nan=False))  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        raise PluginError(
            f"the settings of agent {agent.name!r} must be a mapping with a JSON form: {error}"
        ) from error


def _identity(tool: Plugin) -> dict[str, Any]:
    """Return which tool it is, wherever its file lies."""
    return {"name": tool.name, "origin": package_of(tool), "code": code_of(tool)}
