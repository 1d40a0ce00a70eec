"""Five hundred episodes at sixteen workers against a server that fails by seed: nothing is lost, nothing grows."""

import json
import logging
import random
import statistics
import subprocess
import threading
from collections import Counter
from pathlib import Path

import psutil
import pytest

from support.chat_server import Answer, ChatServer, Request, dropped, failure, html
from support.commands import Bench
from support.runs import ended, navigate, outcomes, start

EPISODES = 500
WORKERS = 16


class Flaky:
    """Answers like `navigate`, and fails by seed in one of seven requests."""

    def __init__(self, seed: int) -> None:
        self._rng, self._lock = random.Random(seed), threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            draw = self._rng.random()
        if draw < 0.03:
            return failure(429, "slow down", headers={"Retry-After": "0.2"})
        if draw < 0.08:
            return failure(500, "flaky")
        if draw < 0.11:
            return dropped()
        if draw < 0.13:
            return html(502)
        return navigate(request)


def watched(process: "subprocess.Popen[bytes]", out: Path) -> list[tuple[int, float, int]]:
    """Return how many episodes had ended, the memory in MB and the open handles, again and again until the end."""
    seen, known = [], psutil.Process(process.pid)
    while process.poll() is None:
        try:
            memory, handles = known.memory_info().rss / 2**20, known.num_fds()
        except psutil.NoSuchProcess:
            break
        done = len(list((out / "episodes").glob("*/result.json"))) if out.exists() else 0
        seen.append((done, memory, handles))
        threading.Event().wait(0.5)
    return seen


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_soak_loses_nothing_and_grows_nowhere(bench: Bench) -> None:
    scenario = bench.scenario(slides=5, agents=["vlm"], repeats=EPISODES // 10)
    out = bench.folder / "kept"
    with ChatServer(Flaky(1)) as server:
        asked = ("--out", out, "--model", "m", "--base-url", server.base_url, "--set", "model.concurrency=16")
        process = start("run", scenario, *asked, "--workers", WORKERS, "--set", "model.timeout_s=20")
        collecting: list[list[tuple[int, str]]] = []
        reader = threading.Thread(target=lambda: collecting.append(ended([process], 1700)))
        reader.start()
        seen = watched(process, out)
        reader.join()
    ((code, said),) = collecting[0]
    assert code in (0, 1), said
    found = Counter(outcomes(out))
    assert sum(found.values()) == EPISODES
    assert set(found) <= {"finished", "infra_error"}
    assert found["finished"] >= 0.98 * EPISODES
    early = [memory for done, memory, _ in seen if done < 100]
    late = [(memory, handles) for done, memory, handles in seen if 100 <= done < EPISODES]
    # Peak against peak: what sixteen episodes hold at one moment differs by more than a hundred MB.
    growth = max(memory for memory, _ in late) - max(early)
    middles = [statistics.median(part) for part in (early[len(early) // 2 :], [memory for memory, _ in late])]
    spread = max(handles for _, handles in late) - min(handles for _, handles in late)
    told = {
        "growth_mb": growth,
        "medians_mb": middles,
        "handles": spread,
        "requests": len(server.requests),
        "outcomes": found,
    }
    logging.getLogger(__name__).warning("%s", json.dumps(told))
    assert growth < 50, f"{growth:.1f} MB after the first 100 episodes"
    assert spread <= 6 * WORKERS, f"{spread} handles"
