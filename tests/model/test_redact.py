"""A key is found in every dress that a server, an agent or a library puts on it."""

import base64
import json
import string
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.cli import main
from pathnav.model import ChatSettings
from pathnav.model.redact import masked, redacted
from pathnav.records import read_events
from support.chat_server import ChatServer, Request, call, failure, say
from support.commands import Bench, Command

KEY = "sk-/Zq+7=w/pathnav_Secret-9"
KEYS = st.text(string.ascii_letters + string.digits + "-_/+=.~:", min_size=6, max_size=48)
AROUND = st.text(max_size=12)


def forms(key: str) -> list[str]:
    """Return the key as it is, escaped from end to end, percent-encoded, and in base64 of three alignments."""
    escaped = "".join(f"\\u{ord(character):04x}" for character in key)
    inside = [base64.b64encode(b"x" * before + key.encode() + b"yz").decode() for before in range(3)]
    return [key, escaped, escaped.upper().replace("U", "u"), quote(key, safe=""), key.replace("/", "\\/"), *inside]


@st.composite
def dressed(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a key and a text of it in which each character is dressed by itself."""
    key = draw(KEYS)
    ways = [
        lambda one: one,
        lambda one: f"\\u{ord(one):04x}",
        lambda one: f"\\u{ord(one):04X}",
        lambda one: f"%{ord(one):02X}",
        lambda one: "\\/" if one == "/" else one,
    ]
    return key, "".join(draw(st.sampled_from(ways))(one) for one in key)


@given(dressed(), AROUND, AROUND)
def test_a_key_is_found_in_any_mix_of_escapes(pair: tuple[str, str], before: str, after: str) -> None:
    key, text = pair
    assert "[key]" in redacted(before + text + after, key)
    assert text not in redacted(before + text + after, key)


@given(dressed(), st.integers(1, 3))
def test_a_key_is_found_in_json_within_json(pair: tuple[str, str], depth: int) -> None:
    key, text = pair
    for _ in range(depth):
        text = json.dumps({"a": text})
    found = redacted(text, key)
    assert "[key]" in found
    for _ in range(depth):
        found = json.loads(found)["a"]
    assert found == "[key]"


@given(KEYS, st.binary(max_size=9), st.binary(max_size=9), st.sampled_from([b"+/", b"-_"]))
def test_a_key_is_found_in_base64_wherever_it_begins(key: str, before: bytes, after: bytes, signs: bytes) -> None:
    text = base64.b64encode(before + key.encode() + after, altchars=signs).decode()
    for dress in (text, text.replace("/", "\\/"), quote(text, safe="")):
        found = redacted(dress, key)
        assert "[key]" in found
        assert len(found) <= len(dress) - 4 * len(key) // 3 + 8, "most of it is gone"


@given(KEYS, st.lists(st.text(max_size=20), max_size=3))
def test_what_holds_no_key_is_left_as_it_is(key: str, texts: list[str]) -> None:
    whole = {"texts": texts, "number": 1.5, "nothing": None}
    if not any(key in text for text in texts):
        assert redacted(whole, key) == whole
    assert redacted("x is a key", "x") == "x is a key"


def test_a_long_text_takes_no_long_time() -> None:
    started = time.monotonic()
    for text in ("\\" * 10**6, "%25" * 100_000, KEY[:-1] * 100_000, "A" * 10**6):
        redacted(text, KEY)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("form", range(8))
def test_a_key_is_found_in_a_long_text(form: int) -> None:
    around = 'It says \\"no\\" at 50% of 2,000 places, /tmp among them. ' * 200
    found = redacted(around + forms(KEY)[form] + around, KEY)
    assert found.startswith(around[:-1]) and found.endswith(around[1:]) and found.count("[key]") == 1


@pytest.mark.parametrize("form", range(8))
def test_a_traceback_shows_no_key(form: int, pathnav: Command, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    shown = forms(KEY)[form]
    with ChatServer(lambda request: failure(401, f"key {'.' * 100} Bearer {shown} has expired")) as server:
        address = ("--model", "m", "--base-url", server.base_url, "--api-key-env", "THE_KEY")
        said = pathnav(*bench.words(*address), "--debug")
    assert said.code == 2 and "Traceback" in said.err and "[key]" in said.err
    assert not any(text in said.err for text in (shown, KEY, KEY[:12], shown[:20]))


def test_what_is_printed_names_no_key_that_was_given(pathnav: Command) -> None:
    ChatSettings("http://127.0.0.1:1", "m", api_key=KEY)
    said = pathnav("report", f"nowhere/{KEY}", "--debug")
    assert said.code == 2 and "Traceback" in said.err
    assert KEY not in said.err and "[key]" in said.err
    assert masked(f"Bearer {KEY}") == "Bearer [key]"


def test_no_record_holds_a_key_that_comes_back_in_any_form(
    pathnav: Command, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    shown = forms(KEY)
    raw = json.dumps({"conclusion": "", "bbox": [600, 600, 100, 100], "confidence": 0.5})
    dress = raw.replace('""', f'"{" ".join(shown)}"')
    with ChatServer(lambda request: call("finish_and_report", dress, content=" ".join(shown))) as server:
        address = ("--model", "m", "--base-url", server.base_url, "--api-key-env", "THE_KEY", "--out", "kept")
        said = pathnav(*bench.words(*address))
    assert said.code == 0, said.err
    (log,) = (bench.folder / "kept").glob("episodes/*/events.jsonl")
    calls = next(event for event in read_events(log) if event["kind"] == "reply")["calls"]
    assert json.loads(calls[0]["arguments"])["conclusion"].count("[key]") == len(shown), "the JSON stays whole"
    for path in (one for one in (bench.folder / "kept").rglob("*") if one.is_file()):
        text = path.read_bytes()
        for one in shown:
            assert one.encode() not in text and json.dumps(one)[1:-1].encode() not in text, path


def test_the_doctor_prints_no_key(pathnav: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    shown = forms(KEY)

    def answer(request: Request) -> object:
        text = " ".join(shown)
        return call("look", f'{{"reason": "{text}"}}', content=text) if "tools" in request.body else say(text)

    with ChatServer(answer) as server:  # type: ignore[arg-type]
        said = pathnav("doctor", "--base-url", server.base_url, "--model", "m", "--api-key-env", "THE_KEY", "--json")
    assert "[key]" in said.out
    assert not [one for one in shown if one in said.out or json.dumps(one)[1:-1] in said.out]


def test_a_fault_of_ones_own_is_told_without_the_key(capsys: pytest.CaptureFixture[str]) -> None:
    from pathnav.cli import _own_fault, _traced

    ChatSettings("http://127.0.0.1:1", "m", api_key=KEY)
    try:
        try:
            raise KeyError(f"Bearer {KEY}")
        except KeyError as cause:
            raise ValueError(KEY.replace("/", "\\/")) from cause
    except ValueError as error:
        _traced(type(error), error, error.__traceback__)
        _own_fault(type(error), error, error.__traceback__)
    said = capsys.readouterr().err
    assert said.count("[key]") == 3 and "pathnav_Secret" not in said.replace('KEY = "', "")
    assert main(["--version"]) == 0
