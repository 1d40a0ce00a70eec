"""What differs between a record and its replay, one line each; images by their pixels where their bytes differ."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pathnav.errors import RecordError
from pathnav.records import ImageStore, JsonObject
from pathnav.run.replay_record import EpisodeRecord

CLOSE_GREY_LEVELS = 8
"""Two JPEG libraries encode one image with pixels that differ by so much at most."""

_NOT_COMPARED = frozenset(("format", "id", "kind", "time", "take", "seconds"))
_SHOWN_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay.

    Args:
        key: The episode's.
        mode: What was run again: `tools`, `model`, `agent`, `actions` or `schedule`.
        differences: One line each; empty where all is equal.
        events: Recorded events that were compared; of a search, the levels.
        images: Images that were compared.
        not_compared: What could not be compared, and why.
    """

    key: str
    mode: str
    differences: tuple[str, ...]
    events: int
    images: int = 0
    not_compared: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def as_json(self) -> dict[str, Any]:
        """Return the object that `pathnav replay --json` prints."""
        return {
            "format": "pathnav-replay-1",
            "key": self.key,
            "mode": self.mode,
            "equal": self.is_equal,
            "events": self.events,
            "images": self.images,
            "differences": list(self.differences),
            "not_compared": list(self.not_compared),
        }


def compared_fields(where: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a line for each field of a recorded object that is another now; fields that only `now` has do not count.

    Args:
        where: What the lines call the object.
        then: As recorded, JSON.
        now: As it is now, JSON types.
    """
    plain = json.loads(json.dumps(now))
    names = [name for name in then if name not in _NOT_COMPARED and then[name] != plain.get(name)]
    return [f"{where}.{name}: recorded {_text(then[name])}, now {_text(plain.get(name))}" for name in names]


def asked_otherwise(record: EpisodeRecord) -> list[str]:
    """Return a line for each part of the question that the result tells otherwise than the events, or the folder."""
    result, asked = record.result, record.event("query")
    told = {**result["query"], "key": result["key"]}
    then = {} if asked is None else {name: asked[name] for name in result["query"] if name in asked and name != "id"}
    then |= {"key": record.folder.name}
    lines = [f"query.{name}: {_text(told[name])}, but {_text(then[name])} when it was asked" for name in then]
    lines = [line for line, name in zip(lines, then, strict=True) if told[name] != then[name]]
    if result["budget"] != result["query"]["budget"]:
        lines.append(f"budget: {result['budget']}, but {result['query']['budget']} in the query")
    return lines


@dataclass(frozen=True, slots=True)
class Pictures:
    """The images of a record and of its replay.

    Args:
        then: Those of the run folder.
        now: The JPEGs of the replay by their SHA-256.
    """

    then: ImageStore
    now: Mapping[str, bytes]

    def difference(self, then: str, now: str) -> str | None:
        """Return how two images differ, None for the same bytes.

        Args:
            then: SHA-256 of the recorded one.
            now: That of the replay's.
        """
        if then == now:
            return None
        try:
            recorded = _pixels(self.then.load(then))
        except RecordError as error:
            return f"the image has other bytes, and the recorded one cannot be compared: {error}"
        made = _pixels(self.now[now])
        if recorded.shape != made.shape:
            return f"the image is {_size(made)} now, recorded {_size(recorded)}"
        most = int(np.abs(recorded - made).max())
        if most <= CLOSE_GREY_LEVELS:
            return f"bytes differ, pixels equal within {most} grey levels"
        return f"pixels differ by up to {most} grey levels"


def compared_events(
    then: Sequence[JsonObject], now: Mapping[str, JsonObject], kinds: Iterable[str], pictures: Pictures
) -> list[str]:
    """Return the differences between recorded events and those of a replay.

    An image with other bytes is told once, where it was made: everywhere else its name counts as the recorded one, and
    the digests of requests, which hold such names, are left out.

    Args:
        then: The recorded events of these kinds, in their order.
        now: All events of the replay by id.
        kinds: Which are compared.
        pictures: The images of both.
    """
    lines, renamed = [], {}
    for event in then:
        made = now.get(event["id"], {}).get("sha256")
        if made is not None and (said := pictures.difference(event["sha256"], made)):
            lines.append(f"{event['id']}: {said}")
            renamed[made] = event["sha256"]
    for event in then:
        if event["id"] not in now:
            lines.append(f"{event['id']}: recorded, does not happen now")
            continue
        made_now = _renamed(now[event["id"]], renamed)
        known = {k: v for k, v in event.items() if not (renamed and k == "request_sha256")}
        lines += compared_fields(event["id"], known, made_now)
    there = {event["id"] for event in then}
    new = [event["id"] for event in now.values() if event["kind"] in set(kinds) and event["id"] not in there]
    return lines + [f"{event_id}: happens now, was not recorded" for event_id in new]


def _renamed(event: JsonObject, names: Mapping[str, str]) -> JsonObject:
    text = json.dumps(event)
    for now, then in names.items():
        text = text.replace(now, then)
    renamed: JsonObject = json.loads(text)
    return renamed


def _pixels(jpeg: bytes) -> Any:
    """Return the pixels of an encoded image: int16, so that differences have a sign."""
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as opened:
        return np.asarray(opened.convert("RGB"), dtype=np.int16)


def _size(pixels: Any) -> str:
    return f"{pixels.shape[1]} x {pixels.shape[0]} px"


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 3]}..."
