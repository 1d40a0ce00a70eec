"""An episode or a search as its folder keeps it, and what of it is needed to run it again."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathnav.cohort.query import Query, Target
from pathnav.errors import RecordError, SlideError
from pathnav.geometry import Box
from pathnav.records import ImageStore, JsonObject, read_events
from pathnav.run.case import Case, SlideFacts, SlideSource
from pathnav.run.folder import EXPLORATION_FORMAT, RESULT_FILE, RESULT_FORMAT

if TYPE_CHECKING:
    from pathnav.slide import Slide

EVENTS_FILE = "events.jsonl"


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """What an episode's folder holds.

    Args:
        folder: `RUN/episodes/KEY`.
        result: Its `result.json`.
        events: Those of the take that the result tells of, under the ids that they have in a first take; none for a
            search.
    """

    folder: Path
    result: JsonObject
    events: tuple[JsonObject, ...]

    @property
    def run(self) -> Path:
        """The run folder."""
        return self.folder.parent.parent

    @property
    def images(self) -> ImageStore:
        """The images of the run."""
        return ImageStore(self.run / "images")

    @property
    def is_search(self) -> bool:
        """Whether it is one of Mode B."""
        return bool(self.result["format"] == EXPLORATION_FORMAT)

    @property
    def asks_in_turns(self) -> bool:
        """Whether the state machine of the vlm agent made it, whose requests are numbered by turn."""
        return self.event("request:0") is not None

    def event(self, event_id: str) -> JsonObject | None:
        """Return the event of an id, None where there is none."""
        return next((event for event in self.events if event["id"] == event_id), None)

    def of_kind(self, *kinds: str) -> list[JsonObject]:
        """Return the events of some kinds in their order."""
        return [event for event in self.events if event["kind"] in kinds]

    def field(self, *names: str) -> Any:
        """Return a field of the result.

        Args:
            names: From the outermost object to the field.

        Raises:
            RecordError: If the result lacks it.
        """
        found: Any = self.result
        for name in names:
            if not isinstance(found, Mapping) or name not in found:
                raise RecordError(f"{self.folder / RESULT_FILE} lacks {'.'.join(names)}, without which nothing runs")
            found = found[name]
        return found

    def case(self, slide: "Slide") -> Case:
        """Return the question, with what is true where the record knows it.

        Raises:
            RecordError: If the result lacks a part of it.
        """
        asked = self.field("query")
        try:
            width, height = asked["target_size"]
            region, names = Box.from_list(asked["region"]), ("handle", "magnification", "finding", "budget")
            query = Query(region=region, target_width=width, target_height=height, **{n: asked[n] for n in names})
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(f"{self.folder / RESULT_FILE} does not tell what was asked: {error}") from error
        facts = SlideFacts(slide.fingerprint, slide.mpp_um, slide.reader, slide.bounds, slide.is_phantom)
        query = dataclasses.replace(query, organ=asked.get("organ"))
        source = SlideSource(str(slide.path), reader=slide.reader)
        return Case(source, facts, query, self._target(), controls=self.result.get("controls") or {})

    def _target(self) -> Target | None:
        box = self.field("target")
        if box is None:
            return None
        same_text = tuple(Box.from_list(other) for other in self.result.get("equivalents") or ())
        return Target(Box.from_list(box), same_text, bool(self.result.get("target_cut")))

    def open_slide(self, moved: str | None = None) -> "Slide":
        """Return the slide of the record, open, read as it was then; the caller closes it.

        Args:
            moved: Where it lies now; default: where it lay.

        Raises:
            SlideError: If it cannot be opened, or is another slide.
        """
        path, then = moved or str(self.field("slide", "path")), self.field("slide")
        remedy = None if moved else "where it was moved, name the file with --slide FILE"
        source = SlideSource(path, reader=then.get("reader"))
        try:
            slide = source.open()
        except SlideError as error:
            raise SlideError(str(error), remedy=error.remedy or remedy) from error
        if slide.fingerprint != self.field("slide", "fingerprint"):
            slide.close()
            told = f"{path} is not the slide of the record, or was changed: its fingerprint differs"
            raise SlideError(told, remedy=remedy)
        power, mpp_um = then.get("objective_power"), tuple(self.field("slide", "mpp_um"))
        if slide.has_mpp and (slide.mpp_um, slide.objective_power) == (mpp_um, power):
            return slide
        slide.close()
        return dataclasses.replace(source, mpp=mpp_um[0], objective_power=power).open()


def load_record(folder: Path) -> EpisodeRecord:
    """Return the record of one episode or search.

    Raises:
        RecordError: If the folder is not an episode's, holds no result yet, or one of another format.
    """
    if not folder.is_dir():
        raise RecordError(f"{folder} is not a folder; expected that of an episode: RUN/episodes/KEY")
    if (folder / "run.json").exists():
        raise RecordError(f"{folder} is a run folder; name one of its episodes: {folder / 'episodes' / 'KEY'}")
    path = folder / RESULT_FILE
    if not path.exists():
        raise RecordError(f"{folder} holds no {RESULT_FILE}: it is no episode, or one that is not finished")
    result = _result(path)
    if result["format"] == EXPLORATION_FORMAT:
        return EpisodeRecord(folder.absolute(), result, ())
    return EpisodeRecord(folder.absolute(), result, _latest_take(read_events(folder / EVENTS_FILE)))


def _result(path: Path) -> JsonObject:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RecordError(f"{path} cannot be read as JSON: {error}") from error
    found = document.get("format") if isinstance(document, dict) else None
    if found not in (RESULT_FORMAT, EXPLORATION_FORMAT):
        raise RecordError(
            f"{path} has the format {found!r}; this version replays {RESULT_FORMAT!r} and {EXPLORATION_FORMAT!r}"
        )
    return dict(document)


def _latest_take(events: list[JsonObject]) -> tuple[JsonObject, ...]:
    """Return the events of the last take, each under its id without the take's number."""
    last = max((event.get("take", 1) for event in events), default=1)
    prefix = f"take{last}:"
    mine = (event for event in events if event.get("take", 1) == last)
    return tuple({**event, "id": event["id"].removeprefix(prefix)} for event in mine)
