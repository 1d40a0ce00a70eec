"""Bad input: one clear sentence on stderr, exit code 2, nothing on stdout, nothing written or lost."""

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.commands import Bench, Command
from support.trees import tree_document, write_json

Arguments = tuple[object, ...]


def refused(pathnav: Command, bench: Bench, arguments: Arguments) -> str:
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


@dataclass(frozen=True)
class Wrong:
    """A command line and what its refusal must say."""

    name: str
    arguments: Callable[[Bench], Arguments]
    says: tuple[str, ...]


def words(name: str, *more: object, says: str | tuple[str, ...]) -> Wrong:
    """Return a `locate` in the user's own words with something wrong added."""
    return Wrong(name, lambda bench: bench.words(*more), (says,) if isinstance(says, str) else says)


def bare(name: str, *arguments: object, says: str | tuple[str, ...]) -> Wrong:
    """Return a whole command line; `SLIDE` and `TREE` stand for those of the bench."""

    def filled(bench: Bench) -> Arguments:
        return tuple({"SLIDE": bench.slide, "TREE": bench.tree}.get(str(a), a) for a in arguments)

    return Wrong(name, filled, (says,) if isinstance(says, str) else says)


OPTIONS = [
    words("mpp too small", "--mpp", 0.04, says="--mpp must be in [0.05, 20], got 0.04"),
    words("mpp too large", "--mpp", 21, says="--mpp must be in [0.05, 20], got 21"),
    words("mpp not a number", "--mpp", "nan", says="--mpp must be in [0.05, 20], got nan"),
    words("mpp no number", "--mpp", "half", says=("'--mpp'", "expected a number, got 'half'")),
    words("power negative", "--objective-power", -20, says="--objective-power must be in"),
    words("reader unknown", "--reader", "bioformats", says=("'--reader'", "openslide", "tiffslide")),
    words("region of three", "--region", "1,2,3", says="--region takes 4 numbers X,Y,W,H, got 3"),
    words("region of words", "--region", "a,b,c,d", says="--region takes 4 numbers X,Y,W,H, got 'a,b,c,d'"),
    words("region not finite", "--region", "0,0,inf,9", says="--region takes 4 finite numbers"),
    words("region nan", "--region", "nan,0,9,9", says="--region takes 4 finite numbers"),
    words("region empty", "--region", "0,0,0,9", says="region must be at least 1 px wide and high, got 0 x 9"),
    words("region negative", "--region", "9,9,-5,9", says="region must be at least 1 px wide and high, got -5 x 9"),
    words("region under a pixel", "--region", "0,0,0.5,9", says="region must be at least 1 px wide and high, got 0.5"),
    words(
        "region cut to under a pixel",
        *("--region", "-5,0,5.5,9"),
        says="the part of region [-5.0, 0.0, 5.5, 9.0] that lies on the slide must be at least 1 px wide and high",
    ),
    words("region outside", "--region", "5000,0,9,9", says=("lies outside the slide", "[0, 0, 2000, 1600]")),
    words("target of zero", "--target-size", "0,5", says="target size must be at least 1 px wide and high, got 0 x 5"),
    words("target under a pixel", "--target-size", "5,0.1", says="target size must be at least 1 px wide and high"),
    words("target of one", "--target-size", "5", says="--target-size takes 2 numbers W,H, got 1"),
    words("target nan", "--target-size", "nan,5", says="--target-size takes 2 finite numbers"),
    words("magnification 7", "--magnification", 7, says="magnification must be 2.5, 10 or 40, got 7"),
    words("magnification nan", "--magnification", "nan", says="magnification must be 2.5, 10 or 40, got nan"),
    words("magnification ten", "--magnification", "ten", says="expected a number, got 'ten'"),
    words("budget 0", "--budget", 0, says="budget must be at least 1 ROI, got 0"),
    words("budget -1", "--budget", -1, says="budget must be at least 1 ROI, got -1"),
    words("budget beyond sense", "--budget", 10**20, says=f"budget must be at most 100,000 ROIs, got {10**20}"),
    words("budget 1.5", "--budget", 1.5, says=("'--budget'", "expected a whole number, got '1.5'")),
    words("seed negative", "--seed", -1, says="seed must be a whole number of 0 or more, got -1"),
    words("finding empty", "--finding", "", says="finding must say what to look for"),
    words("finding blank", "--finding", " \t", says="finding must say what to look for"),
    words("agent unknown", "--agent", "parent-center", says=("'parent-center'", "did you mean parent-centre")),
    words("agent of nothing", "--agent", "", says="there is no agent named ''; installed: "),
    words("agent file missing", "--agent", "mine.py:Mine", says="agent file mine.py does not exist"),
    words("agent class missing", "--agent", "agents.py:Loker", says=("no class 'Loker'", "Looker")),
    words("agent without run", "--agent", "pathnav.geometry:Box", says="has no method run"),
    words("oracle without target", "--agent", "oracle", says="the oracle needs a query whose target is known"),
    words("option without value", "--agent-option", "guides", says="--agent-option takes KEY=VALUE, got 'guides'"),
    words("option unknown", "--agent-option", "zoom=2", says="agent 'vlm' has no option 'zoom'; it has: guides,"),
    words("option twice", "--agent-option", "a=1", "--agent-option", "a=2", says="--agent-option a is given twice"),
    words("option no yaml", "--agent-option", "guides=[", says="'[' is not a YAML value"),
    words("option illegal", "--agent-option", "view_px=3", says="view_px must be at least 64 px, got 3"),
    words("guides twice", "--guides", "--agent-option", "guides=true", says="say the same thing"),
    words(
        "guides for none", "--agent", "random", "--no-guides", says="agent 'random' has no option 'guides'; it has none"
    ),
    words("model without url", "--model", "m", says="--model NAME and --base-url URL must be given together"),
    words("url without model", "--base-url", "http://127.0.0.1:9", says="must be given together"),
    words("tokens without model", "--max-tokens", 9, says="--max-tokens belongs to a chat endpoint"),
    words("query without tree", "--query", "a1", says=("--query a1", "--tree")),
    words("picture jpg", "--picture", "seen.jpg", says="expected a name that ends in .png, got 'seen.jpg'"),
    words("picture nowhere", "--picture", "no/seen.png", says="the folder no does not exist"),
    words("out of nothing", "--out", "", says=("'--out'", "expected the name of a folder, got an empty text")),
    words("out is a file", "--out", "agents.py", says="the output agents.py is a file; expected a folder"),
    words("out is foreign", "--out", ".", says=("is not empty and has no run.json", "--out")),
    words("option misspelt", "--budgt", 3, says=("no such option", "--budgt", "--budget")),
    words("option unheard of", "--frobnicate", says=("no such option", "--frobnicate")),
    words("value missing", "--budget", says="'--budget' requires an argument"),
    words("argument too many", "more", says="unexpected extra argument"),
]
COMMANDS = [
    bare("no slide", "locate", says="missing argument 'SLIDE'"),
    bare("no question", "locate", "SLIDE", says="--finding and --magnification must be given"),
    bare("half a question", "locate", "SLIDE", "--finding", "x", says="--magnification must be given"),
    bare("tree without query", "locate", "SLIDE", "--tree", "TREE", says="name one with --query ID"),
    bare("tree missing", "locate", "SLIDE", "--tree", "no.json", "--query", "a1", says="no.json"),
    bare("tree is no tree", "locate", "SLIDE", "--tree", "agents.py", "--query", "a1", says="agents.py"),
    bare("query unknown", "locate", "SLIDE", "--tree", "TREE", "--query", "a1x", says=("has no node 'a1x'", "a1i")),
    bare(
        "tree and words",
        *("locate", "SLIDE", "--tree", "TREE", "--query", "a1", "--finding", "x"),
        says="--finding cannot be given with --tree",
    ),
    bare("command unknown", "locat", says=("no such command 'locat'", "locate")),
    bare("option before command", "--frobnicate", says=("no such option", "--frobnicate")),
    bare("scenario unknown", "run", "quickstrat", says=("quickstrat", "did you mean quickstart?")),
    bare("set without value", "run", "quickstart", "--set", "seed", says="--set takes KEY=VALUE"),
    bare("scenario key unknown", "run", "quickstart", "--set", "localise.budgets=3", says="localise.budgets"),
    bare("scenario value wrong", "run", "quickstart", "--set", "localise.repeats=0", says="localise.repeats"),
    bare("scenario agent", "run", "quickstart", "--set", "localise.agents=[rndom]", says="did you mean random"),
    bare("scenario model", "run", "quickstart", "--model", "m", says="model 'm' has no address"),
    bare("scenario url", "run", "quickstart", "--model", "m", "--base-url", "ftp://x", says="model.base_url"),
    bare("cohort missing", "run", "mode-a-base", "--cohort", "no.yaml", says="no.yaml"),
    bare("cohort not named", "run", "mode-a-base", says="--cohort FILE"),
    bare(
        "run out of nothing", "run", "quickstart", "--out", "", says="expected the name of a folder, got an empty text"
    ),
    bare("run out is foreign", "run", "quickstart", "--out", ".", says="has no run.json"),
    bare("report of nothing", "report", "no", says=("no is not a folder", "`locate` or `explore` with --out")),
    bare("report of another folder", "report", ".", says="holds no run.json, so that it is no run folder"),
    bare("report form", "report", ".", "--format", "pdf", says="must be one of text, markdown, csv, json, got 'pdf'"),
    bare("port too high", "stub", "--port", 99999, says="a port is 0 to 65535"),
    bare("phantom png", "phantom", "out.png", says="must end in .tif or .tiff"),
    bare("phantom small", "phantom", "out.tiff", "--side", 8, says="side must be"),
    bare("phantom nowhere", "phantom", "no/out.tiff", says="does not exist"),
    bare("phantom seed", "phantom", "out.tiff", "--seed", -4, says="seed must be"),
    bare("inspect missing", "inspect", "no.svs", says="no.svs does not exist"),
    bare("agents with more", "agents", "random", says="unexpected extra argument"),
]


@pytest.mark.parametrize("wrong", [*OPTIONS, *COMMANDS], ids=lambda wrong: wrong.name)
def test_a_wrong_command_line_is_refused_in_one_sentence(pathnav: Command, bench: Bench, wrong: Wrong) -> None:
    sentence = refused(pathnav, bench, wrong.arguments(bench))
    for part in wrong.says:
        assert part in sentence


@pytest.mark.parametrize("command", ["locate", "inspect"])
@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.svs", None, "does not exist"),
        ("empty.svs", b"", "is empty"),
        ("text.svs", b"this is no slide\n" * 9, "is not a slide"),
    ],
)
def test_a_file_that_is_no_slide_is_refused(
    pathnav: Command, bench: Bench, command: str, name: str, content: bytes | None, says: str
) -> None:
    if content is not None:
        (bench.folder / name).write_bytes(content)
    question = ("--finding", "x", "--magnification", 10) if command == "locate" else ()
    sentence = refused(pathnav, bench, (command, name, *question))
    assert name in sentence
    assert says in sentence


def test_a_directory_is_refused(pathnav: Command, bench: Bench) -> None:
    assert "is a directory" in refused(pathnav, bench, ("inspect", bench.folder))


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


def test_a_tree_of_another_slide_is_refused(pathnav: Command, bench: Bench) -> None:
    document = tree_document("a.tif")
    document["slides"][0]["nodes"][0]["box"] = [0, 0, 9000, 9000]
    write_json(bench.tree, document)
    assert "a" in refused(pathnav, bench, bench.node())


def test_an_unknown_key_of_a_scenario_is_refused_with_its_path(pathnav: Command, bench: Bench) -> None:
    path = bench.scenario(budgets=3)
    assert "localise.budgets: unknown key (did you mean localise.budget?)" in refused(pathnav, bench, ("run", path))


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


def test_an_endpoint_that_does_not_resolve_is_bad_input(pathnav: Command, bench: Bench) -> None:
    url = "http://no-such-host.invalid/v1"
    sentence = refused(pathnav, bench, bench.words("--model", "m", "--base-url", url, "--out", "new"))
    assert "does not resolve" in sentence


def test_a_folder_of_ours_is_left_as_it_was_by_an_endpoint_that_refuses(pathnav: Command, bench: Bench) -> None:
    assert pathnav(*bench.node("--agent", "parent-centre", "--out", "run")).code == 0
    url = "http://127.0.0.1:1/v1"
    refused(pathnav, bench, bench.node("--model", "m", "--base-url", url, "--out", "run"))


def test_tracing_variables_stop_the_start(pathnav: Command, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    assert "LANGSMITH_TRACING" in refused(pathnav, bench, bench.words("--out", "new"))
    assert "LANGSMITH_TRACING" in refused(pathnav, bench, ("run", bench.scenario(), "--out", "new"))


def test_a_key_that_the_environment_does_not_hold_is_refused(pathnav: Command, bench: Bench) -> None:
    more = ("--model", "m", "--base-url", "http://127.0.0.1:1", "--api-key-env", "NO_SUCH_KEY")
    assert "NO_SUCH_KEY is not set" in refused(pathnav, bench, bench.words(*more))


def test_debug_shows_the_traceback_and_the_sentence(pathnav: Command, bench: Bench) -> None:
    said = pathnav(*bench.words("--budget", 0, "--debug"))
    assert said.code == 2
    assert "Traceback" in said.err
    assert said.sentences[-1] == "pathnav: budget must be at least 1 ROI, got 0"


def test_one_damaged_tile_is_a_warning_with_its_share(pathnav: Command, shared: Path) -> None:
    said = pathnav("inspect", shared / "slides" / "corrupt-one-tile-zeroed.svs", "--json")
    facts = json.loads(said.out)
    assert said.code == 0
    assert 0 < facts["failed_share"] < 0.1
    assert any("damaged" in warning and f"{facts['failed_share']:.2%}" in warning for warning in facts["warnings"])


def test_one_damaged_tile_warns_an_episode_and_does_not_end_it(pathnav: Command, bench: Bench, shared: Path) -> None:
    slide = shared / "slides" / "corrupt-one-tile-zeroed.svs"
    said = pathnav("locate", slide, "--finding", "x", "--magnification", 10, "--agent", bench.agent("Whole"), "--json")
    assert said.code == 0
    assert json.loads(said.out)["outcome"] == "finished"
    assert any("could not be decoded" in line for line in said.sentences)
