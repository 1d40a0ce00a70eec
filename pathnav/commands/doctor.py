"""`pathnav doctor`: what a model behind an endpoint can do, or whether the installation works."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from pathnav.commands import options as opt
from pathnav.commands.console import BAD_INPUT, DONE, INCOMPLETE, emit, emit_json, json_alone, note
from pathnav.errors import ConfigError

if TYPE_CHECKING:
    from pathnav.model import ChatSettings
    from pathnav.model.probe_finding import Finding


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", short_help="Check a chat endpoint, or the installation.")(json_alone(doctor))


def doctor(
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    api_key_env: opt.ApiKeyEnv = None,
    api_key_file: opt.ApiKeyFile = None,
    profile: opt.ProfileName = None,
    max_tokens: opt.MaxTokens = None,
    write_profile: Annotated[
        Path | None, opt.text_option("FILE.yaml", "Write what was found as a server profile.")
    ] = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
) -> int:
    """Find out what a model behind an endpoint sees and can do, and write a profile for it.

    It shows generated pictures, never a slide, in at most 60 small requests. Exit code 1: a run would make no sense,
    and the last line says why. Without --model and --base-url it checks the installation.

    \b
    Example: pathnav doctor --base-url http://127.0.0.1:8000/v1 --model qwen2.5-vl --write-profile qwen.yaml
    """
    target = opt.writable_file("--write-profile", write_profile, (".yaml", ".yml"), "YAML files")
    hosts = _named_host(base_url)
    endpoint = opt.EndpointOptions(model, base_url, api_key_env, api_key_file, max_tokens, profile, hosts)
    settings = endpoint.settings()
    if settings is not None:
        return _endpoint(settings, target, seed, as_json)
    if target is not None:
        raise ConfigError("--write-profile belongs to a chat endpoint: give --model NAME and --base-url URL too")
    return _installation(as_json)


def _named_host(base_url: str | None) -> tuple[str, ...]:
    """Return the endpoint's host: no slide is shown, so that a public one need not be allowed."""
    try:
        host = urlsplit(base_url or "").hostname
    except ValueError:  # the settings say what is wrong with it
        return ()
    return (host,) if host else ()


def _endpoint(settings: "ChatSettings", target: Path | None, seed: int, as_json: bool) -> int:
    import os

    from pathnav.model import refuse_tracing
    from pathnav.model.probe import examine
    from pathnav.model.probe_line import MAX_CALLS
    from pathnav.model.probe_profile import kept_value, refuse_no_profile, write_profile

    refuse_tracing(os.environ)
    if seed < 0:
        raise ConfigError(f"--seed must be at least 0, got {seed}")
    if target is not None:
        refuse_no_profile(target)
    note(f"asking {settings.endpoint} for {settings.model}: at most {MAX_CALLS} requests")
    found = examine(settings, seed, tell=(lambda finding: None) if as_json else _tell)
    if target is not None:
        write_profile(found, target)
    if as_json:
        emit_json({**found.as_dict(), "profile_file": None if target is None else str(target)})
    else:
        emit(f"verdict: {found.verdict}")
        for name, why in sorted(found.chart.undecided.items()):
            emit(f"undecided: {name} stays {kept_value(found, name)} ({why})")
        emit(f"requests: {found.chart.line.calls}, pictures of seed {seed}")
        if target is not None:
            emit(f"profile: {target}; use it with --profile {target}")
    if found.refuses_key:
        return BAD_INPUT
    return DONE if found.usable else INCOMPLETE


def _installation(as_json: bool) -> int:
    import os

    from pathnav import __version__
    from pathnav.commands.run import DEFAULT_FOLDER
    from pathnav.model.probe import DOCTOR_FORMAT
    from pathnav.model.probe_finding import Result
    from pathnav.run.installation import check_installation

    findings = check_installation(DEFAULT_FOLDER, os.environ)
    failed = [finding.probe for finding in findings if finding.result is Result.NO]
    verdict = f"does not work: {', '.join(failed)}" if failed else "the installation works"
    if as_json:
        document: dict[str, Any] = {"format": DOCTOR_FORMAT, "subject": "installation", "pathnav": __version__}
        document |= {"ok": not failed, "verdict": verdict, "findings": [finding.as_dict() for finding in findings]}
        emit_json(document)
    else:
        for finding in findings:
            _tell(finding)
        emit(f"verdict: {verdict}")
    return INCOMPLETE if failed else DONE


def _tell(finding: "Finding") -> None:
    for line in finding.lines():
        emit(line)
