"""How a slide was read and by what it was judged: what tells two searches of one slide apart, beside the scorer."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pathnav.report.exploration_record import AnnotationRecord, ExplorationResult

_HASH_DIGITS = 7


class Circumstances:
    """Names reader, scale and annotation of searches, each by what it is, where one slide of a report has several.

    What a report says of one row it says of all, so that equal words are equal circumstances in all of its tables.

    Args:
        found: All searches of the report.
    """

    def __init__(self, found: Iterable[ExplorationResult]) -> None:
        known: dict[tuple[str, str], set[object]] = defaultdict(set)
        files: dict[str, set[object]] = defaultdict(set)
        for one in found:
            for part, value in _parts(one).items():
                known[part, one.slide.fingerprint].add(value)
            if one.annotation is not None:
                files[annotation_name(one.annotation) or ""].add(_identity(one.annotation))
        self._several = {place for place, values in known.items() if len(values) > 1}
        self._has_readers = any(part == "reader" for part, _ in self._several)
        self._ambiguous = {name for name, same in files.items() if len(same) > 1}

    def words(self, one: ExplorationResult) -> tuple[str, ...]:
        """Return what is said of a search: nothing where all searches of its slide are alike in it."""
        said = [f"reader {one.slide.reader or 'unknown'}"] if self._has_readers else []
        if ("mpp", one.slide.fingerprint) in self._several:
            said.append(f"mpp {mpp_text(one.slide.mpp_um)}")
        return (*said, *self._annotation(one))

    def _annotation(self, one: ExplorationResult) -> list[str]:
        slide, found = one.slide.fingerprint, one.annotation
        has_files, has_classes = (("file", slide) in self._several, ("classes", slide) in self._several)
        if not (has_files or has_classes or ("bounds", slide) in self._several):
            return []
        if found is None:
            return ["no annotation"]
        classes = ", ".join(found.classes)
        file = self._file(found) if has_files else ""
        said = ": ".join(part for part in (file, classes) if part)
        place = ", from the corner of the scanned area" if ("bounds", slide) in self._several else ""
        return [f"annotation {said}{place if found.relative_to_bounds else ''}"]

    def _file(self, found: AnnotationRecord) -> str:
        name = annotation_name(found)
        if name is None:
            return "none, free of tumour"
        if name not in self._ambiguous:
            return name
        return f"{name} {found.sha256[:_HASH_DIGITS]}" if found.sha256 else str(found.path)


def _parts(one: ExplorationResult) -> dict[str, object]:
    found = one.annotation
    return {
        "reader": one.slide.reader,
        "mpp": one.slide.mpp_um,
        "file": _identity(found) if found else None,
        "classes": found.classes if found else None,
        "bounds": found.relative_to_bounds if found else None,
    }


def _identity(found: AnnotationRecord) -> object:
    return found.sha256 or (found.path or "none")


def annotation_name(found: AnnotationRecord) -> str | None:
    """Return the name of an annotation's file, without its folders; None for a slide that is said to have no tumour."""
    return found.path.replace("\\", "/").split("/")[-1] if found.path else None


def mpp_text(mpp_um: tuple[float, float] | None) -> str:
    """Return micrometres per pixel as text: once where both axes have the same."""
    return "unknown" if mpp_um is None else " x ".join(dict.fromkeys(f"{axis:g}" for axis in mpp_um))


def told(slides: Iterable[ExplorationResult]) -> dict[str, Any]:
    """Return reader, scale and annotation of a row for JSON: null where its slides differ; each slide's own below."""
    each = [
        {
            "fingerprint": one.slide.fingerprint,
            "reader": one.slide.reader,
            "mpp_um": list(one.slide.mpp_um) if one.slide.mpp_um else None,
            "annotation": {
                "file": annotation_name(one.annotation),
                "sha256": one.annotation.sha256,
                "classes": list(one.annotation.classes),
            }
            if one.annotation
            else None,
        }
        for one in slides
    ]
    first = each[0] if each else {}
    names = ("reader", "mpp_um", "annotation")
    common = {name: first.get(name) if all(one[name] == first[name] for one in each) else None for name in names}
    return {**common, "slides": each}


def told_in_a_line(slides: Iterable[ExplorationResult]) -> dict[str, object]:
    """Return the same for CSV: what the slides of a row have, each value once."""
    found = list(slides)
    notes = [one.annotation for one in found if one.annotation]
    values: dict[str, list[str]] = {
        "reader": [one.slide.reader or "" for one in found],
        "mpp_um": [mpp_text(one.slide.mpp_um) for one in found],
        "annotation": [annotation_name(one) or "" for one in notes],
        "annotation_sha256": [one.sha256 or "" for one in notes],
        "annotation_classes": [", ".join(one.classes) for one in notes],
    }
    return {name: "; ".join(dict.fromkeys(filter(None, texts))) for name, texts in values.items()}
