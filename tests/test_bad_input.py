"""Bad input: one clear sentence on stderr, exit code 2, nothing on stdout, nothing written or lost."""

import json
import shlex
import socket
from collections.abc import Iterable
from pathlib import Path

import pytest

from support.commands import Bench, Command
from support.trees import tree_document, write_json


def refused(pathnav: Command, bench: Bench, arguments: Iterable[object]) -> str:
    """Return the one sentence with which a command refuses, after checking that nothing else happened."""
    before = {path: path.read_bytes() if path.is_file() else None for path in bench.files()}
    said = pathnav(*arguments)
    assert said.code == 2, said
    assert said.out == ""
    (sentence,) = said.sentences
    assert sentence.startswith("pathnav: ")
    assert "Traceback" not in sentence
    assert {path: path.read_bytes() if path.is_file() else None for path in bench.files()} == before
    return sentence


# What is added to a `locate` in the user's own words, and the words that its refusal must hold.
OPTIONS = [
    ("--mpp 0.04", "--mpp", "0.04"),
    ("--mpp 21", "--mpp", "21"),
    ("--mpp nan", "--mpp", "nan"),
    ("--mpp half", "'--mpp'", "'half'"),
    ("--objective-power -20", "--objective-power"),
    ("--reader bioformats", "'--reader'", "openslide", "tiffslide"),
    ("--region 1,2,3", "--region", "got 3"),
    ("--region a,b,c,d", "--region", "'a,b,c,d'"),
    ("--region 0,0,inf,9", "--region", "finite"),
    ("--region nan,0,9,9", "--region", "finite"),
    ("--region 0,0,0,9", "region", "0 x 9"),
    ("--region 9,9,-5,9", "region", "-5 x 9"),
    ("--region 0,0,0.5,9", "region", "at least 1 px", "0.5"),
    ("--region=-5,0,5.5,9", "[-5.0, 0.0, 5.5, 9.0]", "at least 1 px"),
    ("--region 5000,0,9,9", "outside the slide", "[0, 0, 2000, 1600]"),
    ("--target-size 0,5", "target size", "0 x 5"),
    ("--target-size 5,0.1", "target size", "at least 1 px"),
    ("--target-size 5", "--target-size", "got 1"),
    ("--target-size nan,5", "--target-size", "finite"),
    ("--magnification 7", "magnification", "got 7"),
    ("--magnification nan", "magnification", "got nan"),
    ("--magnification ten", "'ten'"),
    ("--budget 0", "budget", "got 0"),
    ("--budget -1", "budget", "got -1"),
    (f"--budget {10**20}", "budget", "100,000", str(10**20)),
    ("--budget 1.5", "'--budget'", "'1.5'"),
    ("--seed -1", "seed", "got -1"),
    ("--finding ''", "finding"),
    ("--finding ' \t'", "finding"),
    ("--agent parent-center", "'parent-center'", "did you mean parent-centre"),
    ("--agent ''", "agent", "''", "installed: "),
    ("--agent mine.py:Mine", "mine.py does not exist"),
    ("--agent agents.py:Loker", "'Loker'", "Looker"),
    ("--agent pathnav.geometry:Box", "no method run"),
    ("--agent oracle", "oracle", "target"),
    ("--agent-option guides", "--agent-option", "'guides'"),
    ("--agent-option zoom=2", "'vlm'", "'zoom'", "guides"),
    ("--agent-option a=1 --agent-option a=2", "--agent-option a", "twice"),
    ("--agent-option guides=[", "'['", "YAML"),
    ("--agent-option view_px=3", "view_px", "got 3"),
    ("--guides --agent-option guides=true", "--guides", "--agent-option"),
    ("--agent random --no-guides", "'random'", "'guides'"),
    ("--model m", "--model", "--base-url"),
    ("--base-url http://127.0.0.1:9", "--model", "--base-url"),
    ("--model m --base-url http://127.0.0.1:1 --api-key-env NO_SUCH_KEY", "NO_SUCH_KEY is not set"),
    ("--model m --base-url http://127.0.0.1:1 --api-key-file no.txt", "--api-key-file", "no.txt"),
    ("--model m --base-url http://127.0.0.1:1 --api-key-file a --api-key-env B", "--api-key-file", "--api-key-env"),
    ("--model m --base-url http://127.0.0.1:1 --profile vlm", "did you mean vllm"),
    ("--model m --base-url http://no-such-host.invalid/v1 --out new", "does not resolve"),
    *(
        (f"{option} 9", f"{option} belongs")
        for option in ("--max-tokens", "--profile", "--api-key-file", "--allow-host")
    ),
    ("--query a1", "query a1", "--tree"),
    ("--picture seen.jpg", ".png", "'seen.jpg'"),
    ("--picture no/seen.png", "folder no "),
    ("--out ''", "'--out'", "empty"),
    ("--out agents.py", "agents.py is a file"),
    ("--out .", "no run.json", "--out"),
    ("--anonymise plain", "--anonymise", "--out"),
    ("--anonymise . --out kept", "copy .", "--anonymise"),
    ("--anonymise kept/plain --out kept", "inside of the run folder kept"),
    ("--prices no.yaml", "no.yaml"),
    ("--budgt 3", "--budgt", "--budget"),
    ("--frobnicate", "--frobnicate"),
    ("--budget", "'--budget'", "argument"),
    ("more", "extra argument"),
]
COMMANDS = [
    ("locate", "'SLIDE'"),
    ("locate SLIDE", "--finding", "--magnification", "--tree"),
    ("locate SLIDE --finding x", "--magnification"),
    ("locate SLIDE --tree TREE", "--query"),
    ("locate SLIDE --tree no.json --query a1", "no.json"),
    ("locate SLIDE --tree agents.py --query a1", "agents.py"),
    ("locate SLIDE --tree TREE --query a1x", "'a1x'", "a1i"),
    ("locate SLIDE --tree TREE --query a1 --finding x", "finding", "tree"),
    ("locat", "'locat'", "locate"),
    ("--frobnicate", "--frobnicate"),
    ("explore SLIDE --scorer random --anonymise plain", "--anonymise", "--out"),
    ("explore SLIDE --scorer random --anonymise kept/plain --out kept", "inside of the run folder kept"),
    ("explore SLIDE --scorer random --prices no.yaml", "no.yaml"),
    ("run quickstrat", "quickstrat", "did you mean quickstart?"),
    ("run quickstart --set seed", "--set", "KEY=VALUE"),
    ("run quickstart --set localise.budgets=3", "localise.budgets"),
    ("run quickstart --set localise.repeats=0", "localise.repeats"),
    ("run quickstart --set localise.agents=[rndom]", "did you mean random"),
    ("run quickstart --model m", "model 'm'", "--base-url"),
    ("run quickstart --model m --base-url ftp://x", "model.base_url"),
    ("run mode-a-base --cohort no.yaml", "no.yaml"),
    ("run mode-a-base", "--cohort FILE"),
    ("run quickstart --out ''", "'--out'", "empty"),
    ("run quickstart --out .", "no run.json"),
    ("run quickstart --out kept --anonymise .", "--anonymise"),
    ("plan SCENARIO --prices none.yaml", "none.yaml"),
    ("plan SCENARIO --set 'localise.jitter={sweep: []}'", "sweep", "at least one"),
    ("plan SCENARIO --set 'out={sweep: [a, b]}'", "out", "swept"),
    ("report no", "no is not a folder", "--out"),
    ("report .", "run.json"),
    ("report . --format pdf", "'pdf'", "markdown"),
    ("stub --port 99999", "65535"),
    ("phantom out.png", ".tiff"),
    ("phantom out.tiff --side 8", "side"),
    ("phantom no/out.tiff", "does not exist"),
    ("phantom out.tiff --seed -4", "seed"),
    ("inspect no.svs", "no.svs does not exist"),
    ("inspect .", "directory"),
    ("agents random", "extra argument"),
]
ALL = [*((f"locate SLIDE --finding x --magnification 10 {more}", *says) for more, *says in OPTIONS), *COMMANDS]


@pytest.mark.parametrize("wrong", ALL, ids=lambda wrong: wrong[0])
def test_a_wrong_command_line_is_refused_in_one_sentence(
    pathnav: Command, bench: Bench, wrong: tuple[str, ...]
) -> None:
    words, *says = wrong
    names = {"SLIDE": "a.tif", "TREE": "a.json", "SCENARIO": bench.scenario() if "SCENARIO" in words else ""}
    sentence = refused(pathnav, bench, [names.get(word, word) for word in shlex.split(words)])
    assert [part for part in says if part not in sentence] == [], sentence


@pytest.mark.parametrize("command", ["locate", "inspect"])
@pytest.mark.parametrize(("content", "says"), [(b"", "is empty"), (b"this is no slide\n" * 9, "is not a slide")])
def test_a_file_that_is_no_slide_is_refused(
    pathnav: Command, bench: Bench, command: str, content: bytes, says: str
) -> None:
    (bench.folder / "it.svs").write_bytes(content)
    question = ("--finding", "x", "--magnification", 10) if command == "locate" else ()
    assert f"it.svs {says}" in refused(pathnav, bench, (command, "it.svs", *question))


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_slide_cut_short_is_refused(pathnav: Command, bench: Bench, share: float) -> None:
    whole = bench.slide.read_bytes()
    (bench.folder / "cut.tif").write_bytes(whole[: int(len(whole) * share)])
    assert "cut.tif" in refused(pathnav, bench, ("inspect", "cut.tif"))


@pytest.mark.parametrize("name", ["corrupt-truncated-60pct.svs", "corrupt-truncated-50pct-opens.tif"])
def test_real_slides_cut_short_are_refused(pathnav: Command, bench: Bench, shared: Path, name: str) -> None:
    question = ("--finding", "x", "--magnification", 10)
    assert "cut short" in refused(pathnav, bench, ("locate", shared / "slides" / name, *question))


def test_a_slide_without_a_scale_is_refused_with_both_ways_out(pathnav: Command, bench: Bench, shared: Path) -> None:
    slide = shared / "slides" / "svs-no-mpp-no-appmag.svs"
    sentence = refused(pathnav, bench, ("locate", slide, "--finding", "x", "--magnification", 10))
    assert "--mpp" in sentence
    assert "--objective-power" in sentence


def test_a_tree_with_three_faults_is_refused_with_all_three(pathnav: Command, bench: Bench) -> None:
    document = tree_document("a.tif")
    nodes = document["slides"][0]["nodes"]
    nodes[1]["magnification"] = 7
    nodes[2]["finding"] = " "
    nodes[4]["box"] = [1, 2, 3]
    write_json(bench.tree, document)
    sentence = refused(pathnav, bench, bench.node())
    for part in ("a.json", "a1", "a1i", "a2i", "magnification", "finding", "four numbers"):
        assert part in sentence


def test_a_scenario_with_a_missing_slide_is_refused(pathnav: Command, bench: Bench) -> None:
    path = bench.scenario()
    (bench.folder / "s1.tif").unlink()
    assert "s1.tif does not exist" in refused(pathnav, bench, ("run", path))


@pytest.mark.parametrize("command", ["locate", "run"])
@pytest.mark.parametrize("out", ["new/run", "there"])
def test_an_endpoint_that_refuses_is_bad_input_and_leaves_no_trace(
    pathnav: Command, bench: Bench, command: str, out: str
) -> None:
    (bench.folder / "there").mkdir()
    with socket.socket() as taken:  # bound, not listening: nobody else can take the port
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        asked = bench.words() if command == "locate" else ("run", bench.scenario(agents=["parent-centre", "vlm"]))
        sentence = refused(pathnav, bench, (*asked, "--model", "m", "--base-url", url, "--out", out))
    assert "refuses the connection" in sentence


def test_a_folder_of_ours_is_left_as_it_was_by_an_endpoint_that_refuses(pathnav: Command, bench: Bench) -> None:
    assert pathnav(*bench.node("--agent", "parent-centre", "--out", "run")).code == 0
    url = "http://127.0.0.1:1/v1"
    refused(pathnav, bench, bench.node("--model", "m", "--base-url", url, "--out", "run"))


def test_debug_shows_the_traceback_and_the_sentence(pathnav: Command, bench: Bench) -> None:
    said = pathnav(*bench.words("--budget", 0, "--debug"))
    assert said.code == 2
    assert "Traceback" in said.err
    assert said.sentences[-1].startswith("pathnav: budget ")


def test_one_damaged_tile_warns_an_episode_and_does_not_end_it(pathnav: Command, bench: Bench, shared: Path) -> None:
    slide = shared / "slides" / "corrupt-one-tile-zeroed.svs"
    said = pathnav("locate", slide, "--finding", "x", "--magnification", 10, "--agent", bench.agent("Whole"), "--json")
    assert said.code == 0
    assert json.loads(said.out)["outcome"] == "finished"
    assert any("could not be decoded" in line for line in said.sentences)
