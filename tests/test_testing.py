"""The conformance check passes every shipped agent and names the rule that a broken one breaks."""

from pathlib import Path

import pytest

from pathnav.errors import PathnavError, PluginError
from pathnav.model import ChatClient, ChatSettings
from pathnav.model.stub import STUB_MODEL, StubServer
from pathnav.plugins import Kind, load, names
from pathnav.run.plugin_identity import uses_model
from pathnav.testing import ConformanceError, Rule, check_agent
from support.bad_agents import BAD_AGENTS, Sound
from support.source import imported_modules

SHIPPED = [name for name in names(Kind.AGENT) if name != "oracle"]


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "clip-retrieval"])  # whose extra may be missing
def test_every_shipped_agent_keeps_the_contract(name: str) -> None:
    if uses_model(load(Kind.AGENT, name)):
        with StubServer() as server, ChatClient(ChatSettings(server.base_url, STUB_MODEL)) as client:
            found = check_agent(name, chat=client)
        assert found.looks > 0
    else:
        found = check_agent(name)
    assert found.agent == name
    assert found.episodes == 9
    assert found.rules == tuple(Rule)


def test_an_agent_that_looks_keeps_the_contract() -> None:
    found = check_agent(Sound)
    assert found.looks == 3 * (4 + 3 + 1)
    assert str(found) == "Sound: 7 rules kept in 9 episodes with 24 looks"


@pytest.mark.parametrize("agent", BAD_AGENTS, ids=lambda agent: agent.__name__)
def test_a_broken_agent_fails_on_its_rule(agent: type) -> None:
    with pytest.raises(ConformanceError) as caught:
        check_agent(agent)
    assert caught.value.rule is agent.broken  # type: ignore[attr-defined]
    assert f"agent {agent.__name__!r} breaks the rule {caught.value.rule.value!r}: " in str(caught.value)


def test_every_rule_is_broken_by_somebody() -> None:
    assert {agent.broken for agent in BAD_AGENTS} == set(Rule)


def test_an_error_of_the_agents_own_is_shown_as_it_is() -> None:
    class Stumbles:
        def run(self, environment: object) -> None:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        check_agent(Stumbles)


def test_the_oracle_is_told_nothing_here() -> None:
    with pytest.raises(PluginError, match="known target"):
        check_agent("oracle")


def test_a_fault_is_an_assertion_and_one_of_pathnavs_errors() -> None:
    assert issubclass(ConformanceError, AssertionError)
    assert issubclass(ConformanceError, PathnavError)


def test_an_agent_from_a_file_is_checked_with_its_options(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from pathnav.geometry import Box\n"
        "class Mine:\n"
        "    def __init__(self, side): self.side = side\n"
        "    def run(self, environment):\n"
        "        environment.report(Box.centred(environment.query.region.centre, self.side, self.side))\n"
    )
    assert check_agent(f"{path}:Mine", options={"side": 50}).agent == "Mine"
    with pytest.raises(PluginError, match="has no option 'edge'; it has: side"):
        check_agent(f"{path}:Mine", options={"edge": 50})


def test_the_check_needs_no_test_framework() -> None:
    imported = {module.split(".")[0] for _, module in imported_modules(Path("pathnav/testing.py"))}
    assert not imported & {"pytest", "hypothesis", "unittest"}
