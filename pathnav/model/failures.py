"""What went wrong with one try, and whether another try can help; pure text and numbers, no network."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus

RETRIED_STATUSES = frozenset({408, 425, 429})  # and every 5xx
FIRST_WORDS = 160  # characters of a server's own text that a message quotes
_OVERFLOW = re.compile(  # wordings seen from OpenAI, vLLM, SGLang, llama.cpp, Ollama, Mistral, Anthropic and Gemini
    r"context_length_exceeded|maximum context length|context length of only|model'?s context length"
    r"|exceeds? the (available )?context|exceed_context_size|context size has been exceeded|exceed context window"
    r"|exceeded max context length|longer than the (maximum model|model'?s) length|maximum model length"
    r"|prompt (is )?too long|too long to fit into the model|input tokens exceed|ContextWindowExceeded"
    r"|input token count .{0,40}exceeds|larger than the max context size|model with \d+ maximum context",
    re.IGNORECASE,
)
_LOGPROBS = re.compile(r"log[ _-]?prob", re.IGNORECASE)
_NOT_ABOUT_FIELDS = RETRIED_STATUSES | {401}  # OpenAI answers 403 for models whose log-probabilities it keeps
_NOBODY_SERVED = frozenset({401, 402, 403, 404, 407, 429})  # key, account, address, quota: the same for every question
_URL = "check the base URL"
_WRONG_SETTINGS = {
    401: "check the key",
    403: "check the key and what it may use",
    404: "check the base URL and the model's name",
}
_NO_SUCH_MODEL = re.compile(
    r"invalid model|unknown model|model\b.{0,80}\b(not found|not exist|does not exist)", re.IGNORECASE
)
_LOOKED_AT, _STRANGE = 512, 0.1  # bytes of a body, and the share of them that may be no text: a page may be Latin-1
_DECIMAL = r"\d+(\.\d*)?"
_USED_UP = re.compile(r"insufficient_quota|billing_hard_limit|exceeded your current quota", re.IGNORECASE)
_NO_IMAGES = re.compile(  # llama.cpp answers HTTP 500 to images that its model cannot take
    r"image input is not supported|does not support image|not a multimodal model", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed try.

    Args:
        sentence: What happened, as the second half of a sentence that begins with the endpoint.
        retriable: Whether the same request may succeed later.
        retry_after_s: The wait the server asked for, None where it asked for none.
        overflow: Whether the conversation is longer than the model's context.
        unreachable: Whether no connection came about at all.
        of_settings: Whether a first failure of this kind says that the settings are wrong.
        remedy: What must be done before asking again can help; None where it may help as it is.
        names_logprobs: Whether the request was refused with a word about log-probabilities.
        status: The HTTP status, None where none came or it said that all was well.
    """

    sentence: str
    retriable: bool
    retry_after_s: float | None = None
    overflow: bool = False
    unreachable: bool = False
    of_settings: bool = False
    remedy: str | None = None
    names_logprobs: bool = False
    status: int | None = None

    @property
    def throttles(self) -> bool:
        """Whether the server asks for fewer requests."""
        return self.status == 429 or (self.status == 503 and self.retry_after_s is not None)

    @property
    def may_cost(self) -> bool:
        """Whether the server may have worked for it: it went silent, or answered what cannot be used."""
        return self.status is None and not self.unreachable

    @property
    def is_outage(self) -> bool:
        """Whether other questions are likely to fare alike, unlike after a refusal of this very request."""
        is_redirect = self.status is not None and 300 <= self.status < 400
        return not self.overflow and (self.retriable or is_redirect or self.status in _NOBODY_SERVED)


class CallFailed(Exception):
    """Raised when one try failed; never leaves `pathnav.model`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.sentence)
        self.failure = failure


def of_status(status: int, headers: Mapping[str, str], body: str, message: str | None = None) -> Failure:
    """Return the failure behind an HTTP error answer.

    Args:
        status: The HTTP status, or the one an error body names under HTTP 200.
        headers: The response's headers, names in any case.
        body: The response's text.
        message: The message of an OpenAI-shaped error, if the body is one.
    """
    quoted = first_words(message if message else body)
    sentence = f"answered HTTP {status} {_phrase(status)}".rstrip() + (f": {quoted}" if quoted else " and no text")
    if 300 <= status < 400:  # pixels go to the host the user named, so redirects are reported, not followed
        sentence = f"redirects to {_header(headers, 'location') or 'nowhere'}, which is not followed"
    overflow = bool(_OVERFLOW.search(body))
    temporary = status in RETRIED_STATUSES or status >= 500
    wrong_setting = _wrong_setting(status, body)
    return Failure(
        sentence=sentence,
        retriable=temporary and not (overflow or _USED_UP.search(body) or _NO_IMAGES.search(body)),
        retry_after_s=retry_after_s(headers),
        overflow=overflow,
        names_logprobs=_is_about_fields(status) and not overflow and bool(_LOGPROBS.search(body)),
        status=None if 200 <= status < 300 else status,
        of_settings=wrong_setting is not None,
        remedy=wrong_setting or _remedy(status, body),
    )


def of_body(body: str) -> Failure:
    """Return the failure behind an HTTP 200 whose body is no chat completion."""
    if not body.strip():
        return Failure("answered HTTP 200 with an empty body", retriable=True)
    if _is_page(body):
        sentence = f"answered HTTP 200 with a web page: {first_words(body)}"
        return Failure(sentence, retriable=True, of_settings=True, remedy=_URL)
    sentence = f"answered HTTP 200 with something that is not a chat completion: {first_words(body)}"
    return Failure(sentence, retriable=True, remedy=f"{_URL}, or the server behind it")


def text_of(content: bytes, content_type: str) -> str:
    """Return a body as text; of what is none, its length and type in words, which a terminal can show.

    Args:
        content: The body.
        content_type: As the response's header says; may be empty.
    """
    beginning = content[:_LOOKED_AT].decode("utf-8", "replace")
    strange = sum(character == "\N{REPLACEMENT CHARACTER}" or not _is_text(character) for character in beginning)
    if b"\0" not in content[:_LOOKED_AT] and strange <= _STRANGE * len(beginning):
        return content.decode("utf-8", "replace")
    kind = content_type.partition(";")[0].strip()
    return f"{len(content):,} bytes of {kind or 'no named type'}"


def retry_after_s(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the wait in seconds that `retry-after-ms` or `Retry-After` (seconds or an HTTP date) asks for."""
    text, milliseconds = _header(headers, "retry-after"), _header(headers, "retry-after-ms")
    if re.fullmatch(_DECIMAL, milliseconds):
        return float(milliseconds) / 1000
    if re.fullmatch(_DECIMAL, text):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - (time.time() if now is None else now))
    except ValueError:
        return None


def first_words(text: str) -> str:
    """Return the beginning of a server's text in one line, without markup."""
    plain = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL | re.IGNORECASE)
    line = " ".join("".join(character if _is_text(character) else " " for character in plain).split())
    return line if len(line) <= FIRST_WORDS else line[:FIRST_WORDS].rstrip() + " ..."


def _wrong_setting(status: int, body: str) -> str | None:
    """Return what to check where an answer, coming first, says that the settings are wrong."""
    if 300 <= status < 400 or status == 405 or (status == 501 and _is_page(body)):
        return _URL
    if status == 400 and _NO_SUCH_MODEL.search(body):
        return "check the model's name"
    return _WRONG_SETTINGS.get(status)


def _remedy(status: int, body: str) -> str | None:
    """Return what must be done where a second try cannot help."""
    if _USED_UP.search(body):
        return "wait for the quota, which is used up, or raise it"
    if status == 402:
        return "check the account"
    if status == 400:  # an order of roles, or a place for images, that a profile can mend
        return "mend what the endpoint complains of (pathnav doctor writes a profile that it takes)"
    refused = 400 <= status < 500 and status not in RETRIED_STATUSES
    return "mend what the endpoint complains of" if refused else None


def _is_page(body: str) -> bool:
    beginning = body[:2000].lower()
    return "<html" in beginning or "<!doctype html" in beginning


def _is_text(character: str) -> bool:
    return character.isprintable() or character.isspace()


def _is_about_fields(status: int) -> bool:
    """Return whether a status may mean that a server does not take a field of the request."""
    return status == 501 or (400 <= status < 500 and status not in _NOT_ABOUT_FIELDS)


def _header(headers: Mapping[str, str], wanted: str) -> str:
    return next((text.strip() for name, text in headers.items() if name.lower() == wanted), "")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
