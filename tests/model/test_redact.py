"""A key is taken out wherever it stands as plain text: of records, of what is printed, of tracebacks."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.model import ChatSettings
from pathnav.records import masked, redacted
from support.chat_server import ChatServer, Request, call, failure, say
from support.commands import Bench, Command

KEY = 'sk-/Zq+7=w/pathnav_"Secret"-9'  # JSON writes its quotes otherwise
KEYS = st.text(string.ascii_letters + string.digits + '-_/+=.~:"\\', min_size=6, max_size=48)
TEXTS = st.text(max_size=12)


@given(KEYS, TEXTS, TEXTS)
def test_a_key_is_found_in_texts_lists_names_and_json_within_a_text(key: str, before: str, after: str) -> None:
    text = before + key + after
    ((name, (one, (other, *rest)), whole),) = redacted([(text, [text, (text, 1.5, None)], json.dumps({"a": key}))], key)
    assert key not in name and "[key]" in name and name == one == other and rest == [1.5, None]
    assert whole == '{"a": "[key]"}'
    assert redacted({text: text}, key) == {name: name}


@given(KEYS, st.lists(st.text(max_size=20), max_size=3))
def test_what_holds_no_key_is_left_as_it_is(key: str, texts: list[str]) -> None:
    whole = {"texts": texts, "number": 1.5, "nothing": None}
    if not any(key in text for text in texts):
        assert redacted(whole, key) == whole


@pytest.mark.parametrize("key", [None, "", "x", "short"])
def test_a_key_too_short_to_be_one_tears_no_word_apart(key: str | None) -> None:
    assert redacted("x is a short key", key) == "x is a short key"


def test_what_is_printed_names_no_key_that_was_given(pathnav: Command) -> None:
    plain = KEY.replace('"', "")
    ChatSettings("http://127.0.0.1:1", "m", api_key=plain)
    said = pathnav("report", f"nowhere/{plain}", "--debug")
    assert said.code == 2 and "Traceback" in said.err
    assert plain not in said.err and "[key]" in said.err
    assert masked(f"Bearer {plain}") == "Bearer [key]"


def test_neither_a_traceback_nor_the_doctor_shows_a_key_that_a_server_repeats(
    pathnav: Command, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)

    def answer(request: Request) -> object:
        if request.messages and "tools" in request.body:
            return call("look", {"reason": KEY}, content=KEY)
        return say(KEY)

    with ChatServer(lambda request: failure(401, f"key {'.' * 100} Bearer {KEY} has expired")) as server:
        address = ("--model", "m", "--base-url", server.base_url, "--api-key-env", "THE_KEY")
        said = pathnav(*bench.words(*address), "--debug")
    assert said.code == 2 and "Traceback" in said.err and "[key]" in said.err
    with ChatServer(answer) as server:  # type: ignore[arg-type]
        told = pathnav("doctor", "--base-url", server.base_url, *address[:2], *address[4:], "--json")
    assert "[key]" in told.out
    shown = said.err + told.out + told.err
    assert KEY not in shown and json.dumps(KEY)[1:-1] not in shown
