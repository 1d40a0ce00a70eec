"""The files of a run: whole or not at all, and never the same event twice."""

import hashlib
import json
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathnav.errors import RecordError
from pathnav.records import EventLog, ImageStore, read_events, read_json, write_json_atomic

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_an_event_is_on_disk_when_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path, now=lambda: NOON) as log:
        log.append({"id": "a", "kind": "view", "text": "Grünwald"})
        assert lines(path) == [
            {
                "format": "pathnav-event-1",
                "id": "a",
                "kind": "view",
                "text": "Grünwald",
                "time": "2026-01-02T12:00:00.000+00:00",
            }
        ]


def test_an_event_is_written_once_also_by_a_later_process(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log.append({"id": "a", "n": 1})
        assert log.append({"id": "a", "n": 2})["n"] == 1
    with EventLog(path) as log:
        assert log.append({"id": "a", "n": 3})["n"] == 1
        log.append({"id": "b", "n": 4})
    assert [(event["id"], event["n"]) for event in read_events(path)] == [("a", 1), ("b", 4)]


def test_threads_share_a_log_without_torn_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:

        def write(name: str) -> None:
            for number in range(50):
                log.append({"id": f"{number}", "by": name * 50})

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(int(str(event["id"])) for event in read_events(path)) == list(range(50))


@settings(deadline=None)
@given(cut=st.integers(min_value=0, max_value=400))
def test_a_log_cut_anywhere_opens_with_its_whole_events_and_goes_on(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    with EventLog(path, now=lambda: NOON) as log:
        for name in "abc":
            log.append({"id": name, "text": "line\nbreak"})
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    kept = whole[:cut].count(b"\n")
    assert len(read_events(path)) == kept
    with EventLog(path, now=lambda: NOON) as log:
        assert [event["id"] for event in log] == list("abc")[:kept]
        for name in "abc":
            log.append({"id": name, "text": "line\nbreak"})
    assert path.read_bytes() == whole


def test_a_last_line_of_zeros_as_a_power_cut_leaves_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log.append({"id": "a"})
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0" * 40 + b"\n")
    with EventLog(path):
        assert path.read_bytes() == whole


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"id": "x"}', '{"format": "pathnav-event-1"}'])
def test_a_damaged_line_in_the_middle_is_refused_and_the_file_left_alone(tmp_path: Path, line: str) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log.append({"id": "a"})
    spoilt = line.encode() + b"\n" + path.read_bytes()
    path.write_bytes(spoilt)
    with pytest.raises(RecordError, match="line 1"):
        EventLog(path)
    assert path.read_bytes() == spoilt


def test_an_event_that_json_cannot_hold_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        with pytest.raises(ValueError, match="JSON compliant"):
            log.append({"id": "a", "confidence": float("nan")})
        assert log.get("a") is None
    assert path.read_bytes() == b""


def test_json_is_replaced_in_one_piece_and_leaves_no_scratch_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_json_atomic(path, {"format": "x-1", "n": 1})
    write_json_atomic(path, {"format": "x-1", "n": 2})
    assert read_json(path, "x-1")["n"] == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]


def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_json_atomic(path, {"format": "x-1"})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json_atomic(path, {"format": "x-1", "iou": float("nan")})
    assert read_json(path, "x-1") == {"format": "x-1"}
    with pytest.raises(RecordError, match="cannot be written"):
        write_json_atomic(tmp_path / "missing" / "result.json", {})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not JSON"),
        ("[]", "should have the format 'x-1', but has None"),
        ('{"format": "x-2"}', "should have the format 'x-1', but has 'x-2'"),
    ],
)
def test_json_of_another_format_is_refused(tmp_path: Path, text: str | None, reason: str) -> None:
    path = tmp_path / "result.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(RecordError, match=reason):
        read_json(path, "x-1")


def test_an_image_is_named_by_its_hash_stored_once_and_private(tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "images")
    name = store.save(b"jpeg")
    first = store.path(name).stat()
    assert name == hashlib.sha256(b"jpeg").hexdigest() == store.save(b"jpeg")
    assert store.path(name).stat().st_ino == first.st_ino
    assert stat.S_IMODE(first.st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "images").stat().st_mode) == 0o700
    assert store.load(name) == b"jpeg"


def test_an_image_that_is_gone_or_changed_is_refused(tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "images")
    name = store.save(b"jpeg")
    store.path(name).write_bytes(b"other")
    with pytest.raises(RecordError, match="was changed"):
        store.load(name)
    store.path(name).unlink()
    with pytest.raises(RecordError, match="cannot be read"):
        store.load(name)


def test_a_log_in_use_is_not_opened_and_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log.append({"id": "a"})
        with path.open("ab") as torn:
            torn.write(b'{"half')
        before = path.read_bytes()
        with pytest.raises(RecordError, match="is in use by another run"):
            EventLog(path)
        assert path.read_bytes() == before


def test_what_another_writer_appended_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log.append({"id": "a"})
        foreign = path.read_bytes().replace(b'"a"', b'"b"')
        with path.open("ab") as other:
            other.write(foreign)
        log.append({"id": "c"})
    assert [event["id"] for event in read_events(path)] == ["a", "b", "c"]


def test_a_secret_stands_in_no_event_and_a_short_key_is_none(tmp_path: Path) -> None:
    event = {"id": "a", "parts": [{"sk-secret": "said sk-secret"}], "n": 1}
    with EventLog(tmp_path / "one.jsonl", secret="sk-secret") as log:
        assert log.append(event)["parts"] == [{"[key]": "said [key]"}]
    assert "sk-secret" not in (tmp_path / "one.jsonl").read_text()
    with EventLog(tmp_path / "two.jsonl", secret="s") as log:
        assert log.append(event)["parts"] == event["parts"]
