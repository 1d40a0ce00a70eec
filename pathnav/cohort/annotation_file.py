"""Annotation files of any kind: which kind it is is told by what the file holds, never by its name."""

import json
from pathlib import Path
from typing import Any, BinaryIO

from pathnav.cohort import annotation_asap, annotation_imagescope
from pathnav.cohort.annotation_drawing import Drawings
from pathnav.cohort.annotation_dsa import is_dsa, read_dsa
from pathnav.cohort.annotation_geojson import is_bare_geometry, is_geojson, read_geojson
from pathnav.cohort.annotation_ncrf import is_ncrf, read_ncrf
from pathnav.cohort.annotation_xml import xml_tags
from pathnav.errors import AnnotationError
from pathnav.settings import shown

_MAX_BYTES = 1 << 29
"""JSON takes about eight times its size in memory: 4 GB for the largest file that is read."""

_XML_READERS = {
    annotation_asap.ROOT: annotation_asap.read_asap,
    annotation_imagescope.ROOT: annotation_imagescope.read_imagescope,
}
_JSON_READERS = ((is_geojson, read_geojson), (is_ncrf, read_ncrf), (is_dsa, read_dsa))
_KNOWN = "QuPath GeoJSON, ASAP XML, ImageScope XML, DSA JSON or NCRF JSON"
_NEITHER_TEXT_NOR_MARK = b"\xef\xbb\xbf\xff\xfe\0 \t\r\n"


def read_drawings(path: str | Path) -> Drawings:
    """Read all drawings of an annotation file.

    Raises:
        AnnotationError: If it cannot be read, is of no known kind, or breaks the rules of its kind.
    """
    try:
        with Path(path).open("rb") as stream:
            return _read(stream)
    except OSError as error:
        raise AnnotationError(f"{path}: cannot be read: {error.strerror or error}") from error
    except AnnotationError as error:
        raise AnnotationError(f"{path}: {error}") from error
    except RecursionError as error:
        raise AnnotationError(f"{path}: is nested more deeply than any annotation") from error


def _read(stream: BinaryIO) -> Drawings:
    file_bytes = stream.seek(0, 2)
    if file_bytes > _MAX_BYTES:
        raise AnnotationError(
            f"has {file_bytes / 2**20:,.0f} MiB, and at most {_MAX_BYTES >> 20} MiB are read; export only the regions, "
            "without cells"
        )
    stream.seek(0)
    is_xml = stream.read(256).lstrip(_NEITHER_TEXT_NOR_MARK).startswith(b"<")
    stream.seek(0)
    return _read_xml(stream) if is_xml else _read_json(stream)


def _read_xml(stream: BinaryIO) -> Drawings:
    tags = xml_tags(stream)
    root = next(tags).name  # a file without any element is not XML
    if root not in _XML_READERS:
        raise AnnotationError(f"expected {_KNOWN}, got XML whose root is <{root}>")
    return _XML_READERS[root](tags)


def _read_json(stream: BinaryIO) -> Drawings:
    document = _json_document(stream)
    for fits, read in _JSON_READERS:
        if fits(document):
            return read(document)
    if is_bare_geometry(document):
        kind = (document[0] if isinstance(document, list) else document)["type"]
        raise AnnotationError(
            f"expected a GeoJSON Feature or FeatureCollection, or a list of Features, got a bare {kind}: put it into "
            '{"type": "Feature", "properties": {"classification": {"name": CLASS}}, "geometry": ...}'
        )
    keys = list(document)[:5] if isinstance(document, dict) else document
    raise AnnotationError(f"expected {_KNOWN}, got JSON with {shown(keys)}")


def _json_document(stream: BinaryIO) -> Any:
    try:
        return json.loads(stream.read())
    except ValueError as error:
        raise AnnotationError(f"is neither JSON nor XML: {error}") from error
