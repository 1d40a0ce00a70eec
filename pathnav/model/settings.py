"""What a chat endpoint is and how it is asked; every number here is part of an episode's key unless marked."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from pathnav.errors import ConfigError
from pathnav.model.profile import DEFAULT_PROFILE, Profile
from pathnav.records import remember

DETAILS = ("low", "high", "auto")
TRACING_VARIABLES = (  # langsmith reads each name under both prefixes
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGSMITH_GATEWAY",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
    "LANGCHAIN_GATEWAY",
    "LANGCHAIN_HANDLER",
)
_OFF = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """One endpoint, one model, one way of decoding.

    The base URL is what an OpenAI client is given. `http://host:8000`, `http://host:8000/`, `http://host:8000/v1`,
    `http://host:8000/v1/` and the full `http://host:8000/v1/chat/completions` all mean the same: a URL without a path
    gets `/v1`; any other path is kept as it is (`https://openrouter.ai/api/v1`).

    Raises:
        ConfigError: If a value cannot be used.
    """

    base_url: str  # not part of the key: a server may move
    model: str
    api_key: str | None = field(default=None, repr=False)  # never logged; None for servers that want none
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 1024  # new tokens an answer may have
    seed: int | None = None  # sent only where given
    timeout_s: float = 120.0  # for one try; not part of the key
    image_detail: str = "high"  # what `image_part` writes beside an image: low, high or auto
    allow_hosts: tuple[str, ...] = ()  # public hosts that pixels may be sent to; not part of the key
    profile: Profile = DEFAULT_PROFILE  # how this server is asked; of it the key holds what can change an answer

    def __post_init__(self) -> None:
        remember(self.api_key)
        _parsed(self.base_url)
        for legal, field_name, expected in (
            (bool(self.model.strip()), "model", "a model name"),
            (self.temperature >= 0, "temperature", "a number of at least 0"),
            (0 < self.top_p <= 1, "top_p", "a number in (0, 1]"),
            (self.max_tokens >= 1, "max_tokens", "at least 1"),
            (self.timeout_s > 0, "timeout_s", "a number of seconds above 0"),
            (self.image_detail in DETAILS, "image_detail", f"one of {', '.join(DETAILS)}"),
        ):
            if not legal:
                raise ConfigError(f"{field_name} must be {expected}, got {getattr(self, field_name)!r}")

    @property
    def decoding(self) -> dict[str, Any]:
        """All but the model's name that can change an answer, as plain JSON; a server that moved is not in it."""
        names = ("temperature", "top_p", "max_tokens", "seed", "image_detail")
        fields = {name: getattr(self, name) for name in names}
        return {**fields, "profile": self.profile.key_fields} if self.profile.key_fields else fields

    @property
    def endpoint(self) -> str:
        """The base URL in its normal form, without a trailing slash."""
        parts = _parsed(self.base_url)
        path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
        return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"

    @property
    def host(self) -> str:
        """The host name in lower case."""
        return _parsed(self.base_url).hostname or ""

    @property
    def is_loopback(self) -> bool:
        """Whether the endpoint runs on this machine, so that no proxy stands between."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def refuse_tracing(environ: Mapping[str, str]) -> None:
    """Refuse to start where LangChain would send prompts and pixels to a third party.

    Args:
        environ: The environment, `os.environ`.

    Raises:
        ConfigError: If a tracing or gateway variable of LangSmith is set to anything but an off value.
    """
    found = [name for name in TRACING_VARIABLES if environ.get(name, "").strip().lower() not in _OFF]
    if found:
        raise ConfigError(
            f"{' and '.join(found)} would send prompts and slide pixels to LangSmith; unset it before starting pathnav"
        )


def _parsed(base_url: str) -> SplitResult:
    """Return the parts of a usable base URL."""
    text = base_url.strip()
    if not text.lower().startswith(("http://", "https://")):
        hint = "" if "://" in text else f"; try http://{text}"
        raise ConfigError(f"the base URL must begin with http:// or https://, got {base_url!r}{hint}")
    try:
        parts = urlsplit(text)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a bad port or a broken IPv6 address
        usable = False
    if not usable:
        raise ConfigError(f"the base URL must name a host and a legal port, got {base_url!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(f"the base URL of {parts.hostname} must hold no user, password, query or fragment")
    return parts
