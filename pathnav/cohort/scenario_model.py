"""The part of a scenario that says which model is asked: its endpoint, and how its answers are decoded."""

import os
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from pathnav.cohort import protocol
from pathnav.cohort.limits import MAX_CONCURRENCY
from pathnav.cohort.node import Frozen, Text
from pathnav.errors import ConfigError


class ModelSpec(Frozen):
    """A chat endpoint. Of it only the name, and of its profile what can change an answer, enter an episode's key."""

    name: Text
    base_url: Text | None = None
    api_key_env: Text | None = None
    """Name of the environment variable that holds the key; the key itself never stands in a scenario."""
    api_key_file: Text | None = None
    """File that holds the key, and nothing else."""
    profile: Text | None = None
    """A shipped server profile, or a file of one."""
    allow_hosts: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Hosts outside this machine and its private networks that pixels may be sent to."""
    timeout_s: Annotated[float, Field(gt=0)] = 120.0
    concurrency: Annotated[int, Field(ge=1)] = 8
    """Requests that may be in flight."""
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    """Rate limit; None: as fast as answers come."""

    @field_validator("base_url")
    @classmethod
    def _no_password(cls, url: str | None) -> str | None:
        parts = urlsplit(url or "http://none")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"must be an http(s) address such as http://127.0.0.1:8000/v1, got {url!r}")
        if parts.username or parts.password:
            raise ValueError("must not hold a user name or password; name an environment variable in api_key_env")
        return url

    @field_validator("concurrency")
    @classmethod
    def _bearable(cls, concurrency: int) -> int:
        if concurrency > MAX_CONCURRENCY:
            raise ValueError(f"concurrency must be at most {MAX_CONCURRENCY:,}, got {concurrency}")
        return concurrency

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if self.api_key_env is not None and self.api_key_file is not None:
            raise ValueError("api_key_env and api_key_file both say where the key is: give one of them")
        return self

    def api_key(self) -> str | None:
        """Return the key that the environment or a file holds, None where the scenario names neither.

        Raises:
            ConfigError: If the variable is not set, or the file cannot be read or holds none.
        """
        if self.api_key_file is not None:
            return key_in_file(self.api_key_file)
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env)
        if not key:
            raise ConfigError(f"model.api_key_env: the environment variable {self.api_key_env} is not set")
        return key


def key_in_file(path: str, named: str = "model.api_key_file") -> str:
    """Return the API key that a file holds; blanks around it do not count.

    Args:
        path: The file.
        named: What a message calls the setting.

    Raises:
        ConfigError: If the file cannot be read, or holds none or more than one line; its content is never told.
    """
    try:
        key = Path(path).read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{named}: {path} is not a text file") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{named}: {path} cannot be read: {reason}") from error
    if not key or len(key.split()) > 1:
        raise ConfigError(f"{named}: {path} must hold the key and nothing else")
    return key


class DecodingSpec(Frozen):
    """How a model's answers are decoded."""

    temperature: Annotated[float, Field(ge=0, le=2)] = protocol.TEMPERATURE
    top_p: Annotated[float, Field(gt=0, le=1)] = protocol.TOP_P
    max_tokens: Annotated[int, Field(ge=1)] = protocol.MAX_TOKENS
    seed: int | None = None
    """None sends the seed of the case, so that repeats differ where the server heeds it."""
    image_detail: Literal["low", "high", "auto"] = "high"
