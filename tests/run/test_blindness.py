"""No field of a target reaches anything an agent can read: checked on all traffic and all events of a scenario."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pathnav.cohort.scenario_file import load_scenario
from pathnav.model.stub_answers import STUB_MODEL, Stub
from pathnav.run.scenario_run import ScenarioRun
from support.chat_server import Answer, ChatServer, Request
from support.scenarios import plain, write
from support.trees import write_json, write_slide

# Numbers that turn up by chance nowhere else: neither as sums nor as halves of each other.
NODES = [
    ("a", 2.5, [211, 307, 1103, 907], None, "The first finding."),
    ("a1", 10, [431, 503, 389, 419], "a", "The second finding."),
    ("a1i", 40, [541, 613, 127, 149], "a1", "The third finding."),
]
AGENTS = ["random", "grid-centroid", "tissue-density", "tissue-weighted", "parent-centre", "vlm"]
JITTERED_AGENTS = ["parent-centre", "vlm"]
"""Those to whom it matters where the search region lies."""


@pytest.fixture(scope="module", params=[None, 0.25], ids=["plain", "jittered"])
def traffic(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[list[Request], Path]]:
    """Run every agent but the oracle on every query, the model through a server that keeps what it was sent."""
    folder, stub = tmp_path_factory.mktemp("blind"), Stub()
    agents = JITTERED_AGENTS if request.param else AGENTS
    write_slide(folder / "secret-carcinoma.tif")
    fields = ("id", "magnification", "box", "parent", "finding")
    nodes = [dict(zip(fields, node, strict=True)) for node in NODES]
    slide = {"slide": "secret-carcinoma.tif", "mpp": 0.25, "organ": "breast", "nodes": nodes, "paths": []}
    write_json(folder / "secret.json", {"format": "pathnav-tree-1", "slides": [slide]})

    def answer(received: Request) -> Answer:
        return Answer(body=json.dumps(stub.complete(received.body)).encode())

    with ChatServer(answer) as server:
        cohort = {"slides": [{"path": "secret-carcinoma.tif", "tree": "secret.json"}]}
        localise: dict[str, Any] = {"agents": agents, **({"jitter": request.param} if request.param else {})}
        model = {"name": STUB_MODEL, "base_url": server.base_url}
        path = write(folder / "scenario.yaml", plain(cohort=cohort, localise=localise, model=model))
        progress = ScenarioRun(load_scenario(path), folder / "run").run(lambda _: None, lambda _: None)
        assert (progress.done, progress.failed) == (len(agents) * len(NODES), 0)
        yield server.requests, folder / "run"


def secrets(box: list[int]) -> re.Pattern[str]:
    """Match a target's corner, its far corner or its centre; its size is no secret."""
    x, y, width, height = box
    numbers = [x, y, x + width, y + height, x + width / 2, y + height / 2]
    alone = r"(?<![\w.])(?:{})(?:\.0)?(?![\w.])"
    return re.compile(alone.format("|".join(re.escape(f"{number:g}") for number in numbers)))


def results(run: Path) -> list[tuple[dict[str, Any], Path]]:
    return [(json.loads(path.read_text()), path.parent) for path in sorted(run.glob("episodes/*/result.json"))]


def test_no_request_tells_where_the_target_is(traffic: tuple[list[Request], Path]) -> None:
    requests, _ = traffic
    for _, _, box, _, finding in NODES:
        asked = [request for request in requests if finding in request.text]
        assert asked
        for request in asked:
            answers = [m["content"] for m in request.messages if m["role"] == "assistant"]
            assert not secrets(box).search(request.text.replace("\n".join(filter(None, answers)), ""))


def test_no_event_tells_where_the_target_is(traffic: tuple[list[Request], Path]) -> None:
    _, run = traffic
    own_words = ("report", "reply", "roi", "tool")  # an agent may hit upon a number by itself
    for result, folder in results(run):
        told = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        told = [{k: v for k, v in event.items() if k != "time"} for event in told if event["kind"] not in own_words]
        assert told
        assert not secrets(result["target"]).search(json.dumps(told))


def test_no_request_tells_file_names_or_node_ids(traffic: tuple[list[Request], Path]) -> None:
    requests, _ = traffic
    for request in requests:
        for secret in ("secret", "carcinoma", ".tif", "a1i"):
            assert secret not in request.text


def test_the_test_would_see_a_leak(traffic: tuple[list[Request], Path]) -> None:
    _, run = traffic
    result, _ = results(run)[0]
    assert secrets(result["target"]).search(json.dumps({"target": result["target"]}))
