"""Ask a vision-language model of every tile whether it looks suspicious; see docs/protocol.md, section 3."""

import hashlib
import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.protocol import JPEG_QUALITY, MIN_IMAGE_SIDE_PX
from pathnav.errors import ConfigError, PluginError
from pathnav.explore.prompts import DEFAULT_TARGET, Prompt
from pathnav.explore.scorer import Source, TileImage, TileScore
from pathnav.model.parts import Message, image_part, text_part
from pathnav.model.reply import Reply
from pathnav.model.usage import Usage
from pathnav.model.yes_no import Reading, read_yes_no
from pathnav.parallel import as_ready
from pathnav.records import redacted
from pathnav.slide.pixels import encode_jpeg

if TYPE_CHECKING:
    from pathnav.model.client import ChatClient

KEPT_CHARACTERS = 2000  # of an answer, in the record
DETAIL_FORMAT = "pathnav-vlm-detail-2"
"""Of a stored score's detail. The first had no `format`, `p_yes`, `seconds` or `first_text`; its scores stand."""
_UNREADABLE = Reading(None, None, "unparsed")
_SILENCE = "(no answer)"  # some servers refuse an assistant message without text


class VlmScorer:
    """Show a model one tile at a time, without its place or its slide, and take its Yes or No.

    The confidence is the probability of Yes from the answer's log-probabilities, else the number from 0 to 100 that
    the prompt asks for, else 1 or 0. An answer that cannot be understood is asked for once more.

    Args:
        prompt: A text file with a question of your own; `{target_text}` and `{magnification}` are filled in.
        target_text: What the question asks for; default "malignant tumour".
        jpeg_quality: Of the images sent, 1 to 95.
        top_logprobs: Alternatives of the answer's tokens that are asked for, 1 to 20; 0 asks for no log-probabilities.

    Raises:
        ConfigError: If the prompt file cannot be used, or has no place for a target that is given, or another value is
            out of range.
    """

    name = "vlm"
    version = "1"
    uses_model = True
    batch_tiles = 4096  # scores come one by one, so that a large batch loses nothing and keeps the endpoint busy

    def __init__(
        self,
        prompt: str | Path | None = None,
        target_text: str | None = None,
        jpeg_quality: int = JPEG_QUALITY,
        top_logprobs: int = 20,
    ) -> None:
        self._target_text = DEFAULT_TARGET if target_text is None else target_text.strip()
        if not self._target_text:
            raise ConfigError("target_text must say what is looked for, got nothing")
        self._jpeg_quality = _whole("jpeg_quality", jpeg_quality, 1, 95)
        self._top_logprobs = _whole("top_logprobs", top_logprobs, 0, 20)
        self._prompt = Prompt.of(prompt)
        if target_text is not None and not self._prompt.names_target:
            raise ConfigError(f"the prompt file {prompt} has no {{target_text}}, so target_text would not be asked for")
        self._chat: ChatClient | None = None
        self._workers = 1

    def accept_chat(self, chat: "ChatClient", workers: int) -> None:
        """Take the client of the model.

        Args:
            chat: The client, which the caller closes.
            workers: Threads that read, encode and ask.

        Raises:
            ConfigError: If there is to be less than one.
        """
        if workers < 1:
            raise ConfigError(f"workers must be at least 1, got {workers}")
        self._chat, self._workers = chat, workers

    @property
    def settings(self) -> dict[str, Any]:
        """All that can change a score, as JSON; model and decoding are None as long as there is no client."""
        settings = self._chat.settings if self._chat is not None else None
        return {
            "prompt": self._prompt.version,
            "prompt_sha256": self._prompt.sha256,
            "target_text": self._target_text,
            "jpeg_quality": self._jpeg_quality,
            "top_logprobs": self._top_logprobs,
            "model": settings.model if settings else None,
            "decoding": settings.decoding if settings else None,
        }

    def score(self, tiles: Sequence[TileImage]) -> Iterator[TileScore]:
        """Yield one score per tile, in order, as the answers come.

        Raises:
            PluginError: If no client was handed over.
            ModelError: If a tile got no answer; all scores before it have been yielded.
        """
        early: dict[int, TileScore] = {}
        given = 0
        with closing(self.score_as_ready(tiles)) as ready:
            for place, score in ready:
                early[place] = score
                while given in early:
                    yield early.pop(given)
                    given += 1

    def score_as_ready(self, tiles: Sequence[TileImage]) -> Generator[tuple[int, TileScore]]:
        """Yield each tile's place and score when its answer comes.

        Raises:
            PluginError: If no client was handed over.
            ModelError: If a tile got no answer; no further one was asked for, and what came has been yielded.
        """
        if self._chat is None:
            raise PluginError("scorer 'vlm' asks a chat endpoint and was given no client: call accept_chat first")
        yield from as_ready(self._shown, partial(self._asked, self._chat), tiles, self._workers)

    def _shown(self, tile: TileImage) -> tuple[str, bytes]:
        """Return the question about a tile and its JPEG."""
        question = self._prompt.question(self._target_text, tile.magnification)
        return question, encode_jpeg(_large_enough(tile.read()), self._jpeg_quality)

    def _asked(self, chat: "ChatClient", shown: tuple[str, bytes]) -> TileScore:
        """Return the score that a question and its image get."""
        question, jpeg = shown
        messages: list[Message] = [
            {"role": "user", "content": [text_part(question), image_part(jpeg, chat.settings.image_detail)]}
        ]
        reply = self._ask(chat, messages)
        reading, usage, requests = _read(reply), Usage.of(reply, messages), 1
        first = None
        if reading.yes is None:
            messages += [
                {"role": "assistant", "content": reply.text or _SILENCE},
                {"role": "user", "content": [text_part(self._prompt.again)]},
            ]
            first, reply = reply, self._ask(chat, messages)
            reading, usage, requests = _read(reply), usage + Usage.of(reply, messages), 2
        key = chat.settings.api_key
        found = {**_detail(reply, reading, usage, jpeg, key), "first_text": _kept_text(first, key) if first else None}
        return _score(reading, requests, found)

    def _ask(self, chat: "ChatClient", messages: Sequence[Message]) -> Reply:
        return chat.ask(messages, top_logprobs=self._top_logprobs or None)


def _read(reply: Reply) -> Reading:
    """Return what a reply says; a refusal says nothing of the tile, whatever word it begins with."""
    return _UNREADABLE if reply.refused else read_yes_no(reply.text, reply.logprobs)


def _score(reading: Reading, requests: int, detail: dict[str, Any]) -> TileScore:
    if reading.yes is None:
        return TileScore.unparsed(requests, detail)
    return TileScore(reading.yes, reading.confidence, Source(reading.source), requests, detail)


def _detail(reply: Reply, reading: Reading, usage: Usage, jpeg: bytes, key: str | None) -> dict[str, Any]:
    """Return what the record keeps of the last answer and of the cost of all."""
    known = usage.input_tokens is not None and usage.output_tokens is not None
    found = {
        "format": DETAIL_FORMAT,
        "text": _kept_text(reply, key),
        "image": hashlib.sha256(jpeg).hexdigest(),
        "tokens": {"input": usage.input_tokens, "output": usage.output_tokens} if known else None,
        "p_yes": reading.confidence if reading.source == "logprobs" else None,
        "mass": reading.mass,
        "stated": reading.stated,
        "seconds": round(usage.seconds, 3),
        "retries": usage.retries,
        "images_sent": usage.images,
        "bytes_sent": usage.bytes_sent,
    }
    return {**found, "refused": True} if reply.refused else found


def _kept_text(reply: Reply, key: str | None) -> str:
    """Return an answer's text as a record may hold it."""
    return str(redacted(reply.text, key))[:KEPT_CHARACTERS]


def _large_enough(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return an image with sides of at least `MIN_IMAGE_SIDE_PX`, every pixel repeated a whole number of times."""
    factor = math.ceil(MIN_IMAGE_SIDE_PX / min(rgb.shape[:2]))
    return rgb if factor == 1 else rgb.repeat(factor, axis=0).repeat(factor, axis=1)


def _whole(name: str, value: object, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ConfigError(f"{name} must be a whole number from {least} to {most}, got {value!r}")
    return value
