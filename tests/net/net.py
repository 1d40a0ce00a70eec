"""Run the golden runs with the working tree and compare every value with what the starting commit gave.

    python tests/net/net.py [--only PART] [--base-python PATH] [--cache DIR]

Exit codes: 0 all is equal, 1 something differs, 2 it could not be run.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import translate
from base import HERE, Base, run_inside
from golden import NOT_REPLAYED, TRUTHS, Part, parts

SHOWN = 40


@dataclass(frozen=True)
class Side:
    """One of the two that are compared: its Python, what fills the placeholders in, its formats."""

    base: Base
    python: Path
    filled: dict[str, str]
    fingerprints: dict[str, str]
    is_base: bool

    def run(self, part: Part, out: Path) -> None:
        """Run a part anew; leaves its run folders and `answers.json` in a folder."""
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        scenario_of = _same if self.is_base else translate.scenario_new
        command_of = _same if self.is_base else translate.command_new
        with self.base.stubs() as stubs:  # new ones each time: some answer the same request otherwise the second time
            filled = {**self.filled, "@OUT": str(out), **{f"@URL-{name}": url for name, url in stubs.items()}}
            for name, scenario in part.scenarios.items():
                (out / f"{name}.yaml").write_text(json.dumps(fill(scenario_of(scenario), filled)), encoding="utf-8")
            commands = [fill(command_of(command), filled) for command in commands_of(part)]
            answers = run_inside(self.python, commands, self.fingerprints)
        (out / "answers.json").write_text(json.dumps(answers), encoding="utf-8")

    def rows(self, part: Part, out: Path) -> translate.Rows:
        """Return all rows of a part that was run."""
        read = translate.read_base if self.is_base else translate.read_new
        printed = translate.printed_base if self.is_base else translate.printed_new
        rows: translate.Rows = {}
        for command, answer in zip(commands_of(part), json.loads((out / "answers.json").read_text()), strict=True):
            said = f"`{' '.join(command)}`"
            rows[said] = {"exit code": answer["code"]}
            if answer["printed"].startswith(("{", "source,")):
                rows |= {f"{said} {name}": row for name, row in printed(command, answer["printed"]).items()}
        for folder in sorted({file.parent for file in out.glob("*/run.json")}):
            rows |= {f"{folder.name}: {name}": row for name, row in read(folder).items()}
        return rows


def commands_of(part: Part) -> list[list[str]]:
    """Return the commands of a part: each scenario planned, run, reported in all forms and replayed; then its own."""
    found = []
    for name in part.scenarios:
        out = f"@OUT/{name}"
        found += [["plan", f"{out}.yaml", "--out", out, "--json"], ["run", f"{out}.yaml", "--out", out]]
        found += [["report", out, "--json"], ["report", out, "--rescore", "--json"], ["report", out, "--format", "csv"]]
        found += [["@replay", out]] if name not in NOT_REPLAYED else []
    return [*found, *part.commands]


def _same(value: Any) -> Any:
    return value


def fill(value: Any, filled: dict[str, str]) -> Any:
    """Return a JSON value with the placeholders of its texts filled in."""
    text = json.dumps(value)
    for placeholder in sorted(filled, key=len, reverse=True):
        text = text.replace(placeholder, filled[placeholder])
    return json.loads(text)


def differences(base: translate.Rows, new: translate.Rows) -> list[str]:
    """Return a line for each row or value that is not the same."""
    found = [f"{name}\n    only in the starting commit" for name in base if name not in new]
    found += [f"{name}\n    only in the working tree" for name in new if name not in base]
    for name in base.keys() & new.keys():
        for key in sorted(base[name].keys() | new[name].keys()):
            was, now = (json.dumps(side[name][key]) if key in side[name] else "absent" for side in (base, new))
            if was != now:
                at = next((i for i, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), 0)
                start = max(at - 60, 0) if len(was) > 200 else 0
                found.append(f"{name}\n    {key}: {was[start : start + 200]} -> {now[start : start + 200]}")
    return sorted(found)


def main() -> int:
    """Compare all parts or some, and return the exit code."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", action="append", help="a part; may be repeated")
    options.add_argument("--base-python", type=Path, default=os.environ.get("PATHNAV_NET_BASE_PYTHON"))
    options.add_argument("--cache", type=Path, default=os.environ.get("PATHNAV_NET_CACHE", "~/.cache/pathnav-net"))
    options.add_argument("--all", action="store_true", help=f"print all differences, not {SHOWN} a part")
    given = options.parse_args()
    shared = Path(os.environ.get("PATHNAV_SHARED", HERE.parents[2] / "shared")).resolve()
    chosen = {name: part for name, part in parts(shared).items() if name in (given.only or parts(shared))}
    if not (shared / "slides").is_dir() or not chosen:
        return _say(f"{shared}/slides or the part {given.only} is not there; parts: {', '.join(parts(shared))}", 2)
    cache = Path(given.cache).expanduser().resolve()
    cache.mkdir(parents=True, exist_ok=True)
    base = Base(cache, given.base_python and Path(given.base_python).absolute())
    for name, truth in TRUTHS.items():
        (base.slides / name).write_text(json.dumps(truth), encoding="utf-8")
    fingerprints = base.fingerprints(shared)
    filled = {"@SLIDES": str(base.slides), "@SHARED": str(shared), "@NET": str(HERE)}
    start = Side(base, base.python, filled, {}, is_base=True)
    tree = Side(base, Path(sys.executable), filled, fingerprints, is_base=False)
    return max([_compare(name, part, (start, tree), (cache, given.all)) for name, part in chosen.items()])


def _compare(name: str, part: Part, sides: tuple[Side, Side], where: tuple[Path, bool]) -> int:
    """Run a part where it must be run, print what differs, and return the exit code."""
    cache, show_all = where
    start, tree = sides
    asked = hashlib.sha256(json.dumps([part.scenarios, part.commands, TRUTHS]).encode()).hexdigest()[:12]
    kept, fresh = cache / "base" / f"{name}-{asked}", cache / "tree" / str(HERE).strip("/").replace("/", "-") / name
    began = _cpu_s()
    if not (kept / "answers.json").exists():
        start.run(part, kept)
    halfway = _cpu_s()
    tree.run(part, fresh)
    _check_golden(part, kept)
    base_rows, new_rows = start.rows(part, kept), tree.rows(part, fresh)
    found = differences(base_rows, new_rows)
    for line in found if show_all else found[:SHOWN]:
        _say(line)
    if len(found) > SHOWN and not show_all:
        _say(f"... and {len(found) - SHOWN} more; --all prints them")
    values = sum(len(row) for row in base_rows.values())
    took = f"CPU: base {halfway - began:.0f} s, tree {_cpu_s() - halfway:.0f} s"
    return _say(f"{name}: {len(base_rows)} rows, {values} values, {len(found)} differences ({took})", int(bool(found)))


def _check_golden(part: Part, kept: Path) -> None:
    """Refuse golden runs that failed: two failures are equal and show nothing."""
    for command, answer in zip(commands_of(part), json.loads((kept / "answers.json").read_text()), strict=True):
        if answer["code"] not in (0, 1) and command[0] not in ("inspect", "annotations"):
            shutil.rmtree(kept)
            raise SystemExit(f"the golden run `{' '.join(command)}` itself failed: {answer['said']}")


def _cpu_s() -> float:
    """Return the processor time of this process and of those that have ended, without the stubs."""
    own, ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def _say(text: str, code: int = 0) -> int:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
