"""XML as a stream of elements, without the parts of XML that make untrusted files dangerous.

Expat itself is enough: every way to define or fetch an entity stands in a document type declaration, so refusing that
declaration refuses all of them. Nothing is kept, so that a million vertices cost no more memory than their numbers.
"""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, NoReturn
from xml.parsers import expat

from pathnav.errors import AnnotationError
from pathnav.settings import shown

_CHUNK_BYTES = 1 << 16


class Tag(NamedTuple):
    """The start of an element, or its end: then without attributes."""

    name: str
    attributes: dict[str, str] | None


def xml_tags(stream: BinaryIO) -> Iterator[Tag]:
    """Yield the start and the end of every element.

    Raises:
        AnnotationError: If it is not XML, or declares a document type.
    """
    found: list[Tag] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, attributes: found.append(Tag(name, attributes))
    parser.EndElementHandler = lambda name: found.append(Tag(name, None))
    parser.StartDoctypeDeclHandler = _refuse_document_type
    more = True
    while more:
        chunk = stream.read(_CHUNK_BYTES)
        more = bool(chunk)
        try:
            parser.Parse(chunk, not more)
        except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: an unknown encoding
            raise AnnotationError(f"is not XML that can be read: {error}") from error
        yield from found
        found.clear()


def _refuse_document_type(*_: object) -> NoReturn:
    raise AnnotationError("declares a document type (<!DOCTYPE ...>), which annotations never need: refused as unsafe")


def number(attributes: dict[str, str], name: str, place: str) -> float:
    """Return an attribute's number; some locales write a comma for the point.

    Raises:
        AnnotationError: If it is missing or not a number.
    """
    text = attributes.get(name)
    try:
        return float((text or "").replace(",", "."))
    except ValueError:
        got = "and is missing" if text is None else f"got {shown(text)}"
        raise AnnotationError(f"{place}: {name} must be a number, {got}") from None
