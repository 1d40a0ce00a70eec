"""What one request costs: at most before it is sent, and in the end by what the server counted."""

import base64
import binascii
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pathnav.errors import ConfigError
from pathnav.model.prices import Prices
from pathnav.model.question import Question
from pathnav.model.reply import Tokens
from pathnav.model.settings import ChatSettings

TOKENS_PER_MESSAGE = 16  # a chat template puts 3 to 10 around each
PIXELS_PER_TOKEN = 14 * 14  # the finest patches in use; most models merge four of them into one token
TOKENS_PER_IMAGE = 256  # beside its pixels: thumbnails and separators


class TokenPricing:
    """Prices by the token.

    A request has at most as many tokens as its text has bytes, since no tokenizer in use makes more, and per image one
    for each 196 pixels and 256 more. OpenAI's smallest models count more for an image than that.

    Args:
        prices: What tokens cost.
    """

    def __init__(self, prices: Prices) -> None:
        self._prices = prices

    def refuse_unpriced(self, model: str) -> None:
        """Refuse a model that has no price.

        Raises:
            ConfigError: If it has none.
        """
        if self._prices.usd(model, 1, 1) is None:
            raise ConfigError(
                f"a limit of money needs a price of model {model!r}, and the list of {self._prices.date} has none",
                remedy="name a price file that lists it (--prices), or limit --max-calls instead of --max-usd",
            )

    def bound(self, settings: ChatSettings, question: Question) -> float | None:
        """Return the most that a request can cost, None without a price."""
        return self._prices.usd(settings.model, most_tokens(question), settings.max_tokens)

    def cost(self, settings: ChatSettings, tokens: Tokens | None) -> float | None:
        """Return what a request cost, None where that is not known."""
        if tokens is None or tokens.input is None or tokens.output is None:
            return None
        return self._prices.usd(settings.model, tokens.input, tokens.output)


def most_tokens(question: Question) -> int:
    """Return an upper bound on the tokens of a request."""
    images = [part for message in question.messages for part in _images(message)]
    texts = [{**message, "content": _texts(message)} for message in question.messages]
    text_bytes = len(json.dumps([texts, list(question.tools)], ensure_ascii=False).encode())
    return text_bytes + TOKENS_PER_MESSAGE * len(texts) + sum(_image_tokens(image) for image in images)


def _texts(message: Mapping[str, Any]) -> Any:
    content = message.get("content")
    if not isinstance(content, list):
        return content
    return [part for part in content if not (isinstance(part, Mapping) and "image_url" in part)]


def _images(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and "image_url" in part:
            url = part["image_url"]
            yield str(url["url"] if isinstance(url, Mapping) else url)


def _image_tokens(url: str) -> int:
    """Return the most tokens of an inlined image; one that cannot be read is taken for its bytes."""
    from PIL import Image, UnidentifiedImageError

    encoded = url.partition(";base64,")[2]
    try:
        with Image.open(io.BytesIO(base64.b64decode(encoded, validate=True))) as image:
            pixels = image.size[0] * image.size[1]
    except (binascii.Error, UnidentifiedImageError):
        return len(url)
    return pixels // PIXELS_PER_TOKEN + TOKENS_PER_IMAGE
