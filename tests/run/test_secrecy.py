"""Nothing of the target reaches a request, an event or a tool reply: checked on the traffic of a whole scenario."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import yaml

from pathnav.records import read_events
from support.chat_server import Answer, ChatServer, Request, call, calls
from support.commands import Bench, Command
from support.trees import tree_document, write_json, write_slide

# Numbers that occur nowhere else: corners of the targets, and of a node with the same words as one of them.
CORNERS = {"t25": (111, 137), "t10": (359, 373), "t40": (467, 479), "twin": (683, 691)}


def secret_tree() -> dict[str, Any]:
    """Return a tree with one query a magnification; each node is the parent of the next, so all but t40 are regions."""
    document = tree_document("s.tif")
    document["slides"][0]["nodes"] = [
        {"id": "t25", "magnification": 2.5, "box": [111, 137, 1201, 1103], "parent": None, "finding": "One."},
        {"id": "t10", "magnification": 10, "box": [359, 373, 401, 409], "parent": "t25", "finding": "Two."},
        {"id": "twin", "magnification": 10, "box": [683, 691, 201, 211], "parent": "t25", "finding": "Two."},
        {"id": "t40", "magnification": 40, "box": [467, 479, 101, 103], "parent": "t10", "finding": "Three."},
    ]
    document["slides"][0]["paths"] = []
    return document


def answer(request: Request) -> Answer:
    """Look, look at nothing, and report the middle of the search region."""
    turn = sum(message["role"] == "assistant" for message in request.messages)
    found = re.search(r"Search region \(level-0 px\): \[([^]]*)\]", request.text)
    assert found, request.text
    x, y, width, height = map(float, found.group(1).split(","))
    box = {"x": x + width / 4, "y": y + height / 4, "w": width / 2, "h": height / 2}
    if turn == 0:
        return calls(("get_image_info", {}), ("extract_roi", {**box, "reason": "middle"}), ("extract_roi", {"x": 1}))
    return call("finish_and_report", {"conclusion": "m", "bbox": list(box.values()), "confidence": 0.5})


def numbers_in(text: str) -> set[int]:
    """Return the whole numbers of a text, base64 aside."""
    without_images = re.sub(r"data:image/jpeg;base64,[A-Za-z0-9+/=]+|[0-9a-f]{16,}", "", text)
    return {int(number) for number in re.findall(r"(?<![\d.])\d+(?![\d.])", without_images)}


def test_no_target_reaches_a_request_or_an_event(bench: Bench, pathnav: Command, tmp_path: Path) -> None:
    write_slide(bench.folder / "s.tif")
    write_json(bench.folder / "s.json", secret_tree())
    scenario = {
        "format": "pathnav-scenario-1",
        "cohort": {"slides": [{"path": "s.tif", "tree": "s.json"}]},
        "localise": {"agents": ["vlm", "random", "grid-centroid", "tissue-density", "parent-centre", "oracle"]},
    }
    path = bench.folder / "secret.yaml"
    path.write_text(yaml.safe_dump(scenario))
    out = tmp_path / "out"
    with ChatServer(answer) as server:
        assert pathnav("run", path, "--out", out, "--model", "m", "--base-url", server.base_url).code == 0
        requests = [request.raw.decode() for request in server.requests]
    results = [json.loads(one.read_text()) for one in (out / "episodes").glob("*/result.json")]
    assert len(results) == 24
    assert len(requests) == 8
    _check_events(out, results)
    own = {"t25": "One.", "t10": "Two.", "twin": "Two.", "t40": "Three."}
    for request, (node, finding) in itertools.product(requests, own.items()):
        if f"Finding: {finding}" in request:
            assert not numbers_in(request) & set(CORNERS[node]), f"{node} is told"
            if node == "t10":
                assert set(CORNERS["t25"]) <= numbers_in(request), "the search region is told, so numbers are found"
        assert not numbers_in(request) & set(CORNERS["t40"] + CORNERS["twin"])
        assert not re.search(r"\btargets?\W+(box|bbox|is)|equivalents|target_cut|\biou\b", request, re.IGNORECASE)


def _check_events(out: Path, results: list[dict[str, Any]]) -> None:
    """Check that no event but the oracle's own report holds its query's target."""
    for result in results:
        events = read_events(out / "episodes" / result["key"] / "events.jsonl")
        told = [event for event in events if (result["agent"], event["kind"]) != ("oracle", "report")]
        told = [{k: v for k, v in event.items() if k not in ("draw_boxes", "draw_weights")} for event in told]
        assert not numbers_in(json.dumps(told)) & set(CORNERS[result["query"]["id"]])
        fields = {name for event in told for name in event}
        assert not fields & {"target", "equivalents", "iou", "target_box", "target_cut"}
