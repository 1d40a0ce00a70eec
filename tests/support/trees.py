"""Diagnostic trees as plain documents, to be spoilt by tests, and a small cohort of real files."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from support.coordinates import layout, write_pyramid

SLIDE_WIDTH, SLIDE_HEIGHT = 2000, 1600
SLIDE_LAYOUT = replace(layout(SLIDE_WIDTH, SLIDE_HEIGHT, [4], packing="deflate"), has_grain=False)


def tree_document(slide: str = "a.tif", **entry: Any) -> dict[str, Any]:
    """Return a tree that keeps every rule: two 2.5x nodes, the first with two branches down to 40x."""
    nodes = [
        _node("a", 2.5, [100, 100, 1200, 1000], None, "Tumour beside fat."),
        _node("a1", 10, [200, 200, 400, 400], "a", "Solid sheets of tumour cells."),
        _node("a1i", 40, [300, 300, 100, 100], "a1", "Mitotic figures."),
        _node("a2", 10, [700, 500, 400, 400], "a", "solid  sheets of TUMOUR cells."),
        _node("a2i", 40, [800, 600, 120, 80], "a2", "Necrosis."),
        _node("b", 2.5, [1300, 1100, 600, 400], None, "Normal glands."),
    ]
    paths = [{"nodes": ["a", "a1", "a1i"], "summary": "Invasive carcinoma."}, {"nodes": ["b"], "summary": ""}]
    content = {"slide": slide, "mpp": 0.25, "organ": "breast", "nodes": nodes, "paths": paths, **entry}
    return {"format": "pathnav-tree-1", "slides": [content]}


def _node(node_id: str, magnification: float, box: list[float], parent: str | None, finding: str) -> dict[str, Any]:
    return {"id": node_id, "magnification": magnification, "box": box, "parent": parent, "finding": finding}


def write_json(path: Path, document: Mapping[str, Any]) -> Path:
    """Write a document and return its path."""
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def write_slide(path: Path, mpp_um: float = 0.25) -> Path:
    """Write a slide of 2000 x 1600 px, which differs from file to file by its mpp; it is encoded once a process."""
    path.write_bytes(_slide_file(mpp_um))
    return path


@cache
def _slide_file(mpp_um: float) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return write_pyramid(Path(folder) / "slide.tif", SLIDE_LAYOUT, mpp_um).read_bytes()


def write_cohort(folder: Path, organs: Mapping[str, str]) -> dict[str, Any]:
    """Write a slide and a tree for each name and return the cohort that names them by relative path."""
    slides = []
    for number, (name, organ) in enumerate(organs.items()):
        write_slide(folder / f"{name}.tif", 0.25 + number * 1e-3)
        write_json(folder / f"{name}.json", tree_document(f"{name}.tif", organ=organ))
        slides.append({"path": f"{name}.tif", "tree": f"{name}.json"})
    return {"slides": slides}
