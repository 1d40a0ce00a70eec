"""A chat endpoint that answers with what a record holds; nothing leaves the process."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from pathnav.errors import ContextOverflow, ModelError, RecordError
from pathnav.localise.conversation import reply_of
from pathnav.localise.outcome import Outcome
from pathnav.model import ChatSettings, Reply
from pathnav.model.profile import DEFAULT_PROFILE, Profile
from pathnav.run.replay_record import EpisodeRecord

if TYPE_CHECKING:
    from pathnav.model import ChatClient

_NOWHERE = "http://127.0.0.1:9/v1"
"""The base URL of an endpoint that is never asked."""


class RecordedModel:
    """Gives a record's replies in their order, in the place of a `ChatClient`.

    Args:
        record: The episode.

    Raises:
        RecordError: If the record does not tell how the model was asked.
    """

    def __init__(self, record: EpisodeRecord) -> None:
        self.settings = recorded_settings(record)
        self._replies = record.of_kind("reply")
        self._overflowed = record.result.get("outcome") == Outcome.CONTEXT_OVERFLOW
        self._asked = 0

    def as_client(self) -> "ChatClient":
        """Return itself as the client that an environment takes."""
        return cast("ChatClient", self)

    def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        required_tool: str | None = None,
        *,
        top_logprobs: int | None = None,
    ) -> Reply:
        """Return the next reply of the record, whatever is asked.

        Raises:
            ContextOverflow: Where the recorded conversation ended so.
            ModelError: If more is asked than the record holds.
        """
        number, self._asked = self._asked, self._asked + 1
        if number < len(self._replies):
            return reply_of(self._replies[number])
        if number == len(self._replies) and self._overflowed:
            raise ContextOverflow("the recorded conversation was longer than the model takes")
        raise ModelError(f"request {number} was not made when the episode was recorded: there is no reply to it")


def recorded_settings(record: EpisodeRecord) -> ChatSettings:
    """Return how the model of a record was asked: its first request tells the profile and the seed that was sent.

    Raises:
        RecordError: If the record does not tell it.
    """
    first = record.event("request:0") or {}
    decoding = {**(record.result.get("decoding") or {}), **(first.get("decoding") or {})}
    names = ("temperature", "top_p", "max_tokens", "seed", "image_detail")
    fields = {name: decoding[name] for name in names if name in decoding}
    try:
        given = first.get("profile")
        profile = Profile.model_validate(given) if given is not None else DEFAULT_PROFILE
    except ValidationError as error:
        raise RecordError(f"the server profile of {record.folder} is not one that this version knows") from error
    return ChatSettings(base_url=_NOWHERE, model=str(record.field("model")), profile=profile, **fields)
