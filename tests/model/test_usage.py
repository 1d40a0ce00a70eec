"""Usage adds up, and what is unknown stays unknown."""

from typing import Any

from pathnav.model import Reply, Tokens, Usage, image_part, text_part

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": [text_part("a"), image_part(b"1"), image_part(b"2")]},
    {"role": "assistant", "content": "b"},
    {"role": "tool", "tool_call_id": "x", "content": [image_part(b"3")]},
]


def reply(tokens: Tokens | None) -> Reply:
    return Reply("", (), "stop", False, tokens, seconds=0.5, retries=1, bytes_sent=100)


def test_usage_sums_calls_retries_seconds_images_bytes_and_tokens() -> None:
    total = Usage.of(reply(Tokens(10, 2)), MESSAGES) + Usage.of(reply(Tokens(20, 3)), MESSAGES[:1])
    assert total == Usage(2, 2, 1.0, 5, 200, 30, 5)


def test_one_call_without_usage_makes_the_sum_unknown_not_smaller() -> None:
    total = Usage() + Usage.of(reply(Tokens(10, 2)), MESSAGES) + Usage.of(reply(None), MESSAGES)
    assert (total.input_tokens, total.output_tokens) == (None, None)
    assert total.calls == 2
