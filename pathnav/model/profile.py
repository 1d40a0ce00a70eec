"""Server profiles: how one kind of chat server, or one model behind it, wants to be asked (`docs/profiles.md`).

A server's quirks are fields here, and nowhere an `if` of its own. Shipped profiles are the YAML files in `profiles/`;
`pathnav doctor` writes one from what it sees.
"""

import difflib
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pathnav.errors import ConfigError
from pathnav.settings import compose_mapping, validated

PROFILE_FORMAT: Literal["pathnav-profile-1"] = "pathnav-profile-1"


class ToolCalling(StrEnum):
    """How a model calls tools: in the API's own field, or as a JSON action in its text."""

    NATIVE = "native"
    TEXT = "text"


class Placement(StrEnum):
    """Where the images of tool replies go.

    `user_after_tools`: all replies as text, then one user message with the images; most servers take it.
    `bridge`: the same with an assistant sentence between, for templates that refuse a user turn right after tools.
    `tool`: inside the tool message; only where it is known that the model sees them there.
    """

    USER_AFTER_TOOLS = "user_after_tools"
    BRIDGE = "bridge"
    TOOL = "tool"


class Frame(StrEnum):
    """What a model's coordinates count: level-0 pixels of the slide, or places in an image that it was shown.

    `view_px`: pixels of the image; `unit`: 0 to 1 of its sides; `thousand`: 0 to 1000 of its sides; `thousand_yx`: the
    same with y before x.
    """

    LEVEL0 = "level0"
    VIEW_PX = "view_px"
    UNIT = "unit"
    THOUSAND = "thousand"
    THOUSAND_YX = "thousand_yx"


class BoxForm(StrEnum):
    """How a box is written: corner and extent, or two corners."""

    XYWH = "xywh"
    XYXY = "xyxy"


class ToolChoice(StrEnum):
    """What is sent where a tool must be called: its name, `required`, or nothing but the request in words."""

    NAMED = "named"
    REQUIRED = "required"
    AUTO = "auto"


class Structured(StrEnum):
    """What holds the answers of the text protocol to JSON: nothing, any object, or the schema of an action."""

    NONE = "none"
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"


Count = Annotated[int, Field(ge=1)]


class Profile(BaseModel):
    """How a server is asked. The defaults are those of OpenAI's own API."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["pathnav-profile-1"] = PROFILE_FORMAT
    name: str = "openai"
    tools: ToolCalling = ToolCalling.NATIVE
    placement: Placement = Placement.USER_AFTER_TOOLS
    frame: Frame = Frame.LEVEL0
    box: BoxForm = BoxForm.XYWH
    logprobs: bool = True
    """Whether log-probabilities are asked for; a server that refuses them is asked without all the same."""
    token_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """What the server calls the limit of new tokens."""
    tool_choice: ToolChoice = ToolChoice.NAMED
    sends_seed: bool = True
    images_per_request: Count | None = None
    """Images that the server takes in one request; None: as many as there are."""
    images_live: Count | None = None
    """Images that stay in the conversation; of older ones a line of text is left. The overview always stays."""
    structured_output: Structured = Structured.NONE
    reasoning_tags: tuple[str, ...] = ("think",)
    """Tags around what a model says to itself: taken out of the answer, kept in the record."""
    context_tokens: Count | None = None
    """The model's context, for warnings beforehand."""
    pixels_per_token: Annotated[float, Field(gt=0)] = 750.0
    """For estimates of what an image costs."""

    @property
    def most_images(self) -> int | None:
        """How many images a request may hold, None for any number."""
        return min((n for n in (self.images_per_request, self.images_live) if n is not None), default=None)

    @property
    def key_fields(self) -> dict[str, Any]:
        """What can change an answer and is not as in the default profile, as plain JSON."""
        given = self.model_dump(mode="json")
        fields = {
            name: given[name]
            for name, field in type(self).model_fields.items()
            if name not in _NOT_IN_KEY and getattr(self, name) != field.default
        }
        if self.tools is ToolCalling.TEXT:
            from pathnav.model.text_tools import protocol_hash

            fields["text_protocol"] = protocol_hash()
        return fields


_NOT_IN_KEY = frozenset({"format", "name", "token_field", "context_tokens", "pixels_per_token"})
DEFAULT_PROFILE = Profile()


@cache
def shipped_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come with pathnav."""
    folder = files("pathnav.model").joinpath("profiles")
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml")))


def load_profile(source: str) -> Profile:
    """Return a profile.

    Args:
        source: A shipped name, or a YAML file.

    Raises:
        ConfigError: If there is none, or it is wrong, with one sentence a line.
    """
    shipped = shipped_profiles()
    if source in shipped:
        text = files("pathnav.model").joinpath("profiles", f"{source}.yaml").read_text(encoding="utf-8")
        return _parsed(text, source)
    path = Path(source).expanduser()
    if not path.is_file():
        near = difflib.get_close_matches(source, shipped, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"shipped profiles: {', '.join(shipped)}"
        raise ConfigError(f"there is no profile file {source} and none of that name is shipped; {hint}")
    try:
        return _parsed(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"profile file {path} cannot be read: {error}") from error


def _parsed(text: str, source: str) -> Profile:
    return validated(Profile, compose_mapping(text, source, "profile", PROFILE_FORMAT))
