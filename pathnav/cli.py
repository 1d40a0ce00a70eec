"""The `pathnav` command: parse, call, and turn every error into one sentence and an exit code."""

import os
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Annotated

import typer
from typer.main import get_command

from pathnav import __version__
from pathnav.commands import (
    agents,
    annotations,
    anonymise,
    doctor,
    explore,
    inspect,
    locate,
    phantom,
    plan,
    replay,
    report,
    run,
    stub,
)
from pathnav.commands.console import BAD_INPUT, DONE, INCOMPLETE, INTERRUPTED, emit, note
from pathnav.commands.stopping import stop_told
from pathnav.errors import PathnavError
from pathnav.records import masked

DEBUG = "--debug"

# Every error of the option parser; typer vendors the parser or imports it, depending on its version.
_PARSER_ERRORS: tuple[type[Exception], ...] = tuple(
    cls for cls in typer.BadParameter.__mro__ if issubclass(cls, Exception) and hasattr(cls, "format_message")
)

app = typer.Typer(
    name="pathnav",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _module in (
    *(locate, explore, plan, run, report, replay, anonymise),
    *(agents, inspect, annotations, phantom, stub, doctor),
):
    _module.register(app)


def _print_version(asked: bool) -> None:
    if asked:
        emit(f"pathnav {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def pathnav(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option(DEBUG, help="Show the traceback of an error; allowed anywhere.")] = False,
) -> None:
    """Find out whether a vision-language model can navigate a whole-slide image.

    Exit codes: 0 done, 1 stopped by a failure that is not the agent's, 2 bad input (nothing written), 130 Ctrl-C,
    143 SIGTERM.
    """
    if context.invoked_subcommand is None:
        emit(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Args:
        arguments: What follows `pathnav`; default: that of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in given
    if arguments is None:
        sys.excepthook = _traced if debug else _own_fault
    try:
        code = get_command(app).main([text for text in given if text != DEBUG], "pathnav", standalone_mode=False)
        if code == INTERRUPTED:  # newer parsers return it, older ones raise Abort
            raise KeyboardInterrupt
        return code if isinstance(code, int) else DONE
    except _PARSER_ERRORS as error:
        return _failed(_sentence(error), BAD_INPUT, debug)
    except PathnavError as error:
        return _failed(error.with_remedy, BAD_INPUT, debug)
    except (KeyboardInterrupt, typer.Abort):
        return _failed(*stop_told(), debug)
    except BrokenPipeError:
        # The reader has gone, as `head` does; what is still buffered must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INCOMPLETE
    except OSError as error:
        return _failed(str(error), INCOMPLETE, debug)


def _sentence(error: BaseException) -> str:
    """Return the parser's message in the shape of ours: no capital, no full stop."""
    message: str = error.format_message()  # type: ignore[attr-defined]  # all of _PARSER_ERRORS have it
    context = getattr(error, "ctx", None)
    text = message[:1].lower() + message[1:].rstrip(".")
    return f"{text} (see {context.command_path} --help)" if context else text


def _failed(message: str, code: int, debug: bool) -> int:
    """Tell what went wrong and return the exit code."""
    if debug:
        _traced(*sys.exc_info())
    note(masked(f"pathnav: {message}"))
    return code


def _own_fault(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Tell of a fault of pathnav's own in one sentence; the interpreter then exits with 1."""
    what = f"{kind.__name__}: {error}"
    note(masked(f"pathnav: a fault of pathnav's own, {what} (run it again with {DEBUG} and report what it shows)"))


def _traced(kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
    """Show a traceback, with all that led to it, without a key that a server or an agent repeated in a message."""
    sys.stderr.write(masked("".join(traceback.format_exception(kind, error, trace))))
