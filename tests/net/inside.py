"""Run pathnav commands in this one process and write what each printed; started with the Python of either side.

    python -P inside.py REQUEST.json ANSWER.json

REQUEST holds `commands`, a list of argument lists, and `fingerprints`, by path: what the starting commit calls a slide.
Ties, jitter and handles are drawn from that name, so the working tree is given the same ones whatever rule it has.
"""

import contextlib
import io
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

CRASHED = 70
"""Exit code that stands for an exception that no command should let through."""


def main() -> None:
    """Run all commands of the request, in order."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    _give_fingerprints(request["fingerprints"])
    answers = []
    for command in request["commands"]:
        began = time.monotonic()
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr):
            if command[0] == "@replay":
                code, printed = _replay_all(Path(command[1]))
            elif command[0] == "@read":
                code, printed = 0, Path(command[1]).read_text(encoding="utf-8")
            else:
                code, printed = _run(command)
        seconds, said = round(time.monotonic() - began, 1), stderr.getvalue()[-2000:]
        answers.append({"code": code, "printed": printed, "said": said, "seconds": seconds})
    Path(sys.argv[2]).write_text(json.dumps(answers), encoding="utf-8")


def _give_fingerprints(known: dict[str, str]) -> None:
    """Let slides of known paths have the given fingerprints."""
    from pathnav.slide.slide import Slide

    own = Slide.fingerprint
    compute = own.func if hasattr(own, "func") else own.fget
    Slide.fingerprint = property(lambda slide: known.get(str(Path(slide.path).resolve())) or compute(slide))


def _run(arguments: list[str]) -> tuple[int, str]:
    """Return the exit code of a command and its stdout; sys.stderr is the caller's."""
    from pathnav import cli

    stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(stdout):
        try:
            code = cli.main(arguments)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except Exception:  # noqa: BLE001 - a crash of one command is a difference, not the end of the comparison
            traceback.print_exc()
            code = CRASHED
    return code, stdout.buffer.getvalue().decode()


def _replay_all(run: Path) -> tuple[int, str]:
    """Replay each episode of a run, those of the vlm agent also with its recorded replies; count what came out."""
    counts: dict[str, int] = {}
    for result in sorted(run.glob("episodes/*/result.json")):
        record: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        more = [[], ["--model-from-record"]] if record.get("agent") == "vlm" else [[]]
        for options in more:
            code, _ = _run(["replay", str(result.parent), "--json", *options])
            said = f"exit code {code}{' from record' if options else ''}"
            counts[said] = counts.get(said, 0) + 1
    return 0, json.dumps(counts)


if __name__ == "__main__":
    main()
