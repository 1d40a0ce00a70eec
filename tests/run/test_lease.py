"""Leases: one holder at a time, among threads, processes and what they leave behind."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from pathnav.errors import ConfigError
from pathnav.run import lease as leasing
from pathnav.run.lease import Leases
from pathnav.run.shard import Shard

HOLD = """
import pathlib, sys, time
from pathnav.run.lease import Leases
leases = Leases(pathlib.Path(sys.argv[1]))
print(leases.claim("key") is not None, flush=True)
sys.stdin.read()
"""


def of_another_machine(path: Path, age_s: float) -> None:
    """Make a lease look as if another machine held it and had renewed it so long ago."""
    path.write_text(json.dumps({**json.loads(path.read_text()), "machine": "elsewhere", "owner": "they"}))
    os.utime(path, (time.time() - age_s,) * 2)


def test_a_name_has_one_holder_until_it_is_released(tmp_path: Path) -> None:
    with closing(Leases(tmp_path / "leases")) as mine, closing(Leases(tmp_path / "leases")) as yours:
        held = mine.claim("key")
        assert held is not None
        assert (mine.claim("key"), yours.claim("key")) == (None, None)
        assert yours.claim("other") is not None
        assert mine.holds(held) and not yours.is_free("key")
        assert yours.names() == ["key", "other"]
        mine.release(held)
        assert yours.claim("key") is not None
    assert not (tmp_path / "leases").exists()


@pytest.mark.parametrize("links", [True, False], ids=["links", "no-links"])
def test_of_many_that_claim_at_once_one_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    def refused(*paths: object) -> None:
        raise PermissionError(1, "no links here")

    if not links:
        monkeypatch.setattr(leasing.os, "link", refused)
    everybody = [Leases(tmp_path / "leases") for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            found = list(pool.map(lambda one, number=number: one.claim(f"key{number}"), everybody))
            assert sum(lease is not None for lease in found) == 1
    for one in everybody:
        one.close()


def test_of_many_that_take_over_at_once_one_gets_it(tmp_path: Path) -> None:
    first = Leases(tmp_path / "leases")
    everybody = [Leases(tmp_path / "leases") for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for number in range(10):
            gone = first.claim(f"key{number}")
            assert gone is not None
            of_another_machine(gone.path, age_s=61)
            found = list(pool.map(lambda one, number=number: one.claim(f"key{number}"), everybody))
            assert sum(lease is not None for lease in found) == 1
            assert not first.holds(gone) and gone.lost.is_set()
    for one in (*everybody, first):
        one.close()


def test_a_lease_of_another_machine_stands_for_a_minute_after_its_last_renewal(tmp_path: Path) -> None:
    with closing(Leases(tmp_path / "leases")) as mine, closing(Leases(tmp_path / "leases")) as yours:
        held = mine.claim("key")
        assert held is not None
        of_another_machine(held.path, age_s=50)
        assert yours.claim("key") is None
        of_another_machine(held.path, age_s=61)
        taken = yours.claim("key")
        assert taken is not None and taken.generation == 2
        mine.release(held)
        assert yours.holds(taken)


def test_a_lease_is_renewed_while_its_holder_works(tmp_path: Path) -> None:
    with closing(Leases(tmp_path / "leases", expiry_s=1.0, renewal_s=0.1)) as mine:
        held = mine.claim("key")
        assert held is not None
        before = held.path.stat().st_mtime
        time.sleep(0.5)
        assert held.path.stat().st_mtime > before
        assert mine.holds(held)


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    with (
        subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder,
        closing(Leases(folder)) as mine,
    ):
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        assert mine.claim("key") is None
        holder.kill()
        holder.wait()
        assert mine.claim("key") is not None


def test_what_is_held_for_moments_is_waited_for(tmp_path: Path) -> None:
    everybody, inside = [Leases(tmp_path / "leases") for _ in range(6)], [0, 0]

    def enter(leases: Leases) -> None:
        for _ in range(40):
            with leases.alone("door"):
                inside[0] += 1
                inside[1] = max(inside)
                time.sleep(0.001)
                inside[0] -= 1

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(enter, everybody))
    for one in everybody:
        one.close()
    assert inside == [0, 1]


def test_the_last_to_leave_removes_what_killed_processes_left(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    killed, mine = Leases(folder), Leases(folder)
    for name in ("key", "process-x"):
        held = killed.claim(name)
        assert held is not None
        about = json.loads(held.path.read_text())
        held.path.write_text(json.dumps({**about, "process": 2**22 + 5}))  # beyond the largest number of a process
    (folder / ".clock-old").touch()
    os.utime(folder / ".clock-old", (0, 0))
    assert mine.claim("other") is not None
    mine.close()
    assert not folder.exists()
    killed.close()


def test_the_last_to_leave_removes_the_clocks_of_processes_that_were_killed(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    with closing(Leases(folder)) as mine:
        assert mine.claim("key") is not None
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"False\n"
            assert list(folder.glob(".clock-*")), "it looked at the lease's age"
            mine._sweep()
            assert list(folder.glob(".clock-*")), "the clock of a process that works is left to it"
            other.kill()
            other.wait()
    assert not folder.exists()


def test_shards_share_a_plan_evenly_and_leave_nothing_out() -> None:
    plan = list(range(23))
    shares = [Shard.of(f"{number}/5").share(plan) for number in range(1, 6)]
    assert sorted(one for share in shares for one in share) == plan
    assert {len(share) for share in shares} == {4, 5}
    assert Shard.of(None).share(plan) == plan


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0", "-1/4", "1/2/3", ""])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--shard must be I/N"):
        Shard.of(text)
