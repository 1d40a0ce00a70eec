"""The options that name a chat endpoint, shared by all commands that may ask a model."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathnav.commands.options import a_whole_number
from pathnav.errors import ConfigError

if TYPE_CHECKING:
    from pathnav.model import ChatSettings

ApiKeyEnv = Annotated[
    str | None,
    typer.Option("--api-key-env", metavar="VARIABLE", help="Environment variable that holds the endpoint's key."),
]
ApiKeyFile = Annotated[
    Path | None, typer.Option("--api-key-file", metavar="FILE", help="File that holds the key, and nothing else.")
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=a_whole_number,
        help="New tokens an answer may have; default: 1,024. Reasoning models need 4,096.",
    ),
]
ProfileName = Annotated[
    str | None,
    typer.Option(
        "--profile", metavar="NAME", help="Server profile: openai (default), vllm, ollama, text, ..., or a YAML file."
    ),
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host", metavar="HOST", help="A host on a public network that pixels may be sent to. May be repeated."
    ),
]


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """What the options say; None where one is not given."""

    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    api_key_file: Path | None = None
    max_tokens: int | None = None
    profile: str | None = None
    allow_hosts: tuple[str, ...] = ()

    def settings(self) -> "ChatSettings | None":
        """Return the chat endpoint, None where the options name none.

        Raises:
            ConfigError: If one of model and base URL is missing, a value is not usable, or there is no key.
        """
        if self.model is None and self.base_url is None:
            self._refuse_orphans()
            return None
        if self.model is None or self.base_url is None:
            raise ConfigError(
                "--model NAME and --base-url URL must be given together: pathnav knows no default endpoint"
            )
        from pathnav.model import ChatSettings, load_profile
        from pathnav.model.hosts import refuse_public

        given = {
            "max_tokens": self.max_tokens,
            "profile": load_profile(self.profile) if self.profile else None,
        }
        settings = ChatSettings(
            base_url=self.base_url,
            model=self.model,
            api_key=self._key(),
            allow_hosts=self.allow_hosts,
            **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
        )
        refuse_public(settings.host, settings.allow_hosts)
        return settings

    def _refuse_orphans(self) -> None:
        further = {
            "--api-key-env": self.api_key_env,
            "--api-key-file": self.api_key_file,
            "--max-tokens": self.max_tokens,
            "--profile": self.profile,
            "--allow-host": self.allow_hosts or None,
        }
        for option in [name for name, value in further.items() if value is not None]:
            raise ConfigError(f"{option} belongs to a chat endpoint: give --model NAME and --base-url URL too")

    def _key(self) -> str | None:
        """Return the key from the environment or a file, None where none is named."""
        if self.api_key_env is not None and self.api_key_file is not None:
            raise ConfigError("--api-key-env and --api-key-file name two keys: give one of them")
        if self.api_key_file is not None:
            from pathnav.cohort.scenario import key_in_file

            return key_in_file(str(self.api_key_file), "--api-key-file")
        key = os.environ.get(self.api_key_env) if self.api_key_env else None
        if self.api_key_env and not key:
            raise ConfigError(f"--api-key-env: the environment variable {self.api_key_env} is not set")
        return key
