"""What reaches stdout and the terminal while plug-ins print and workers warn."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import Bench, Command

TALKERS = '''
"""Plug-ins that print."""

import sys

print("at import")


class Agent:
    def __init__(self):
        print("agent made")

    def run(self, environment):
        sys.stdout.write("looking")
        environment.report(environment.query.region)


class Scorer:
    def score(self, tiles):
        from pathnav.explore import Source, TileScore

        print("scoring")
        return [TileScore(True, 0.5, Source.COMPUTED) for tile in tiles]
'''


@pytest.fixture
def talkers(bench: Bench) -> Path:
    path = bench.folder / "talkers.py"
    path.write_text(TALKERS, encoding="utf-8")
    return path


def test_what_plug_ins_print_never_stands_beside_the_json(pathnav: Command, bench: Bench, talkers: Path) -> None:
    asked = {
        "looking": bench.words("--agent", f"{talkers}:Agent"),
        "scoring": ("explore", bench.slide, "--tile-px", 64, "--scorer", f"{talkers}:Scorer"),
        "agent made": ("run", bench.scenario(agents=[f"{talkers}:Agent"])),
    }
    for printed, command in asked.items():
        stdout = sys.stdout
        said = pathnav(*command, "--json")
        assert said.code == 0
        (line,) = said.out.splitlines()
        assert json.loads(line)["format"].startswith("pathnav-")
        assert "at import" in said.err and printed in said.err
        assert sys.stdout is stdout


def test_without_json_plug_ins_print_where_they_like(pathnav: Command, bench: Bench, talkers: Path) -> None:
    assert "looking" in pathnav(*bench.words("--agent", f"{talkers}:Agent")).out


def test_a_refusal_gives_stdout_back(pathnav: Command, bench: Bench) -> None:
    stdout = sys.stdout
    assert pathnav(*bench.words("--budget", 0, "--json")).code == 2
    assert sys.stdout is stdout
    assert pathnav("agents").out


BUSY = """
import logging, threading, time
from pathnav.commands.progress import progress_shown
from pathnav.run.runner import Progress

def warn(worker):
    for number in range(20):
        logging.getLogger("pathnav.model").warning("worker %d warns; try %d of 20 in 0.5 s", worker, number)
        time.sleep(0.002)

with progress_shown() as show:
    threads = [threading.Thread(target=warn, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for done in range(200):
        show(Progress(planned=1, kept=0, tiles=f"vlm, 2.5x: {done} of 200 tiles"))
        time.sleep(0.001)
    for thread in threads:
        thread.join()
"""


def test_warnings_of_many_workers_stand_on_lines_of_their_own_above_the_bar() -> None:
    reading, writing = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    running = subprocess.Popen([sys.executable, "-c", BUSY], stderr=writing, env=environment)
    os.close(writing)
    shown = b""
    try:
        while piece := os.read(reading, 65536):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.close(reading)
    assert running.wait(60) == 0
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()))
    warned = [line for line in lines if "warns" in line]
    wanted = {f"worker {worker} warns; try {number} of 20 in 0.5 s" for worker in range(8) for number in range(20)}
    assert len(warned) == len(wanted) and set(warned) == wanted
