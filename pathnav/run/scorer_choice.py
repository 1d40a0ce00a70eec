"""Which scorer scores tiles, with which options and which model."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pathnav.cohort.protocol import check_concurrency
from pathnav.errors import ConfigError, PluginError
from pathnav.explore.oracle import OracleScorer
from pathnav.explore.scorer import Scorer, ScorerConfiguration
from pathnav.plugins import Kind, Plugin
from pathnav.run.key import hashed
from pathnav.run.plugin_identity import code_of, package_of, resolved, settings_of, uses_model

if TYPE_CHECKING:
    from pathnav.model import ChatClient, ChatSettings
    from pathnav.retrieval import EmbeddingStore

WORKERS_PER_CONNECTION = 1.5
"""Threads read and encode while others wait: 24 for 16 connections keep an endpoint busy that takes 100 ms."""


@dataclass(frozen=True)
class ScorerChoice:
    """A scorer as chosen by a user.

    Args:
        plugin: The loaded class.
        options: Its keyword arguments.
        model: The chat endpoint that it asks; None for scorers that ask none.
        concurrency: Requests that may be in flight; changes no score.
    """

    plugin: Plugin
    options: Mapping[str, Any] = field(default_factory=dict)
    model: "ChatSettings | None" = None
    concurrency: int = 1

    @classmethod
    def of(
        cls,
        scorer: str | type | Plugin,
        options: Mapping[str, Any] | None = None,
        model: "ChatSettings | None" = None,
        *,
        seed: int = 0,
        concurrency: int = 1,
    ) -> "ScorerChoice":
        """Return the choice of a scorer, checked by making it once.

        Args:
            scorer: An installed name, `path/to/file.py:Class`, `package.module:Class`, or the class itself.
            options: Keyword arguments of the class.
            model: The chat endpoint; left out for a scorer that asks none.
            seed: Of the run: handed to a scorer that has an option of that name and is not given it, and to a server.
            concurrency: Requests that may be in flight.

        Raises:
            PluginError: If there is no such scorer, or it does not take the options.
            ConfigError: If an option has no legal value, or the scorer needs a model and none is given.
        """
        check_concurrency(concurrency)
        plugin = loaded_scorer(scorer)
        needs_model = uses_model(plugin)
        if needs_model and model is None:
            raise ConfigError(f"scorer {plugin.name!r} asks a chat endpoint: name its model and base URL")
        given = dict(options or {})
        if "seed" in settings_of(plugin, {}):
            given.setdefault("seed", seed)
        if model is not None and model.seed is None:
            model = dataclasses.replace(model, seed=seed)
        choice = cls(plugin, given, model if needs_model else None, concurrency)
        choice.plugin.create(choice.options)
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
    def is_oracle(self) -> bool:
        """Whether it is the control that is told the truth: by its very class, whatever others call themselves."""
        return self.plugin.cls is OracleScorer

    @property
    def is_pathnavs(self) -> bool:
        """Whether it comes with pathnav: its declared version says then when its scores change."""
        return (package_of(self.plugin) or "").startswith("pathnav ") and code_of(self.plugin) is None

    @property
    def workers(self) -> int:
        """Threads that read, encode and ask."""
        return max(1, round(self.concurrency * WORKERS_PER_CONNECTION))

    def create(self, chat: "ChatClient | None", embeddings: "EmbeddingStore | None" = None) -> Scorer:
        """Return a fresh scorer, with the client of its endpoint where it asks one, and a place for embeddings.

        Raises:
            PluginError: If the class does not take the options, or cannot be given a client.
            ConfigError: If an option has no legal value.
        """
        scorer: Scorer = self.plugin.create(self.options)
        if self.model is not None and chat is not None:
            accept = getattr(scorer, "accept_chat", None)
            if not callable(accept):
                raise PluginError(f"scorer {self.name!r} asks a model but has no method accept_chat(chat, workers)")
            accept(chat, self.workers)
        if embeddings is not None and callable(keep := getattr(scorer, "accept_embeddings", None)):
            keep(embeddings)
        return scorer

    def configured(self, scorer: Scorer, tile_px: int) -> ScorerConfiguration:
        """Return what names the scorer's scores in a store: settings that it does not declare are its options."""
        code = code_of(self.plugin) or (None if self.is_pathnavs else package_of(self.plugin))
        found = ScorerConfiguration.of(scorer, tile_px, code)
        if hasattr(scorer, "settings"):
            return found
        return dataclasses.replace(found, settings=settings_of(self.plugin, self.options))

    @cached_property
    def _identity(self) -> ScorerConfiguration:
        return self.configured(self.create(None), 0)

    @property
    def settings(self) -> dict[str, Any]:
        """What the scorer declares of itself, without endpoint and truth."""
        return dict(self._identity.settings)

    @cached_property
    def key_fields(self) -> dict[str, Any]:
        """All of the choice that can change a score: neither the endpoint's address, nor key, nor concurrency."""
        identity = self._identity
        return {
            "scorer": identity.name,
            "version": identity.version,
            "code": identity.code,
            "settings": identity.settings,
            "model": self.model.model if self.model else None,
            "decoding": self.decoding,
        }

    @property
    def configuration(self) -> str:
        """A hash of `key_fields`: results of different scorers, code, settings or models are never averaged."""
        return hashed(self.key_fields)

    @property
    def secret(self) -> str | None:
        """The endpoint's key, which may stand in no file; None where there is none."""
        return self.model.api_key if self.model else None

    @property
    def decoding(self) -> dict[str, Any] | None:
        """How the model answers, None without a model."""
        return None if self.model is None else self.model.decoding


def loaded_scorer(scorer: str | type | Plugin) -> Plugin:
    """Return the plug-in of a scorer.

    Args:
        scorer: An installed name, `path/to/file.py:Class`, `package.module:Class`, or the class itself.

    Raises:
        PluginError: If there is none, or it has no `score`.
    """
    plugin = resolved(Kind.SCORER, scorer)
    if not callable(getattr(plugin.cls, "score", None)):
        raise PluginError(f"scorer {plugin.name!r} has no method score(tiles), which every scorer has")
    return plugin
