"""Which failures are worth another try, and what is said about them."""

from email.utils import formatdate

import pytest

from pathnav.model.backoff import Backoff
from pathnav.model.failures import first_words, of_body, of_status, retry_after_s

OVERFLOWS = {
    "OpenAI": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    "OpenAI code": '{"error": {"message": "Too long", "code": "context_length_exceeded"}}',
    "vLLM": "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens",
    "vLLM images": "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
    "vLLM decoder": "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "SGLang": "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "llama.cpp": "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "llama.cpp older": "the request exceeds the available context size. try increasing the context size",
    "llama.cpp 500": "Context size has been exceeded.",
    "llama-cpp-python": "Requested tokens (2285) exceed context window of 2048",
    "Ollama": "the input length exceeds the context length",
    "Mistral": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "Anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "Gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
}


@pytest.mark.parametrize("server", OVERFLOWS)
@pytest.mark.parametrize("status", [400, 500])
def test_a_context_overflow_is_known_by_each_servers_wording_and_not_tried_again(server: str, status: int) -> None:
    failure = of_status(status, {}, OVERFLOWS[server])
    assert failure.overflow and not failure.retriable


@pytest.mark.parametrize(
    "text", ["max_tokens must be at least 1", "image too large", "unknown field 'context'", "invalid tool_choice"]
)
def test_other_refusals_are_no_overflow(text: str) -> None:
    assert not of_status(400, {}, text).overflow


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 529])
def test_temporary_statuses_are_tried_again(status: int) -> None:
    assert of_status(status, {}, "busy").retriable


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 405, 413, 415, 422])
def test_other_statuses_are_not_tried_again(status: int) -> None:
    assert not of_status(status, {}, "no").retriable


def test_an_exhausted_quota_is_not_tried_again() -> None:
    assert not of_status(429, {}, '{"error": {"code": "insufficient_quota"}}').retriable


def test_a_model_that_takes_no_images_is_not_asked_again() -> None:
    body = '{"error": {"code": 500, "message": "image input is not supported - hint: you may need the mmproj"}}'
    assert not of_status(500, {}, body).retriable


def test_a_redirect_is_reported_with_its_goal() -> None:
    assert "redirects to https://other/v1" in of_status(308, {"Location": "https://other/v1"}, "").sentence


def test_an_html_page_is_quoted_by_its_first_words_in_one_line() -> None:
    page = "<html><style>h1 {color: red}</style>\n<body><h1>502</h1>\n<p>Bad\n Gateway</p>" + "x" * 500
    sentence = of_status(502, {}, page).sentence
    assert sentence.startswith("answered HTTP 502 Bad Gateway: 502 Bad Gateway")
    assert "\n" not in sentence and "<" not in sentence and len(sentence) < 250


def test_an_unusable_body_under_http_200_is_named() -> None:
    assert of_body("  ").sentence == "answered HTTP 200 with an empty body"
    assert "a web page: Open WebUI" in of_body("<!doctype html><html><title>Open WebUI</title></html>").sentence
    assert first_words("a\n b") == "a b"


def test_retry_after_is_read_in_seconds_in_milliseconds_and_as_a_date() -> None:
    assert retry_after_s({"Retry-After": "3"}) == 3
    assert retry_after_s({"retry-after": "0.5"}) == 0.5
    assert retry_after_s({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after_s({"Retry-After": formatdate(1_000_030, usegmt=True)}, now=1_000_000) == 30
    assert retry_after_s({"Retry-After": formatdate(1_000_000, usegmt=True)}, now=1_000_030) == 0
    assert retry_after_s({"Retry-After": "soon"}) is None
    assert retry_after_s({}) is None


def test_waits_double_with_jitter_up_to_a_limit_and_never_undercut_the_server() -> None:
    backoff = Backoff()
    assert [backoff.wait_s(retry, 0.0) for retry in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert backoff.wait_s(0, 0.999) == pytest.approx(0.5, abs=0.01)
    assert all(backoff.wait_s(2, draw, retry_after_s=7) >= 7 for draw in (0.0, 0.5, 0.999))
