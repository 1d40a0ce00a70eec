"""What the tables of Mode B tell, and which rows stand in one table."""

from pathlib import Path

import pytest

from pathnav.report.render import render
from pathnav.report.summary import Report
from pathnav.report.tables import tables
from support.explorations import COUNTS, LOST, NO_TUMOUR, SMALLER, Counts, exploration, over, report_of, sweep


def titles(report: Report) -> list[str]:
    return [table.title for table in tables(report)]


def lines_of(report: Report, title: str) -> dict[str, list[str]]:
    """Return the cells of the tables with a title, by the scorer's label and K."""
    found = [table for table in tables(report) if table.title.startswith(title)]
    return {
        " ".join(str(entry).strip() for entry in line.entries[: table.key_columns]): [
            str(entry) for entry in line.entries[table.key_columns :]
        ]
        for table in found
        for line in table.lines
    }


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return report_of(tmp_path, *sweep("abcdef"))


# hit rates


def test_every_cell_of_hit_rates_tells_slides_and_positives(report: Report) -> None:
    conditional, unconditional = (
        lines_of(report, f"Mode B at K = 6,3,2: {rate}")["vlm (qwen)"] for rate in ("conditional", "unconditional")
    )
    assert [*conditional, *unconditional] == [
        "40.00 [40.00, 40.00] n 6/60",
        "30.00 [30.00, 30.00] n 6/120",
        "20.00 [20.00, 20.00] n 6/240",
        "40.00 [40.00, 40.00] n 6/60",
        "15.00 [15.00, 15.00] n 6/240",
        "4.00 [4.00, 4.00] n 6/1200",
    ]


def test_the_papers_rows_stand_beside_ours_at_its_schedule_only(report: Report) -> None:
    labels = list(lines_of(report, "Mode B at K = 6,3,2"))
    assert labels[:3] == ["random", "paper: Random sampling", "vlm (qwen)"]
    assert labels[3] == "paper: GPT-5.2" and len(labels) == 2 + 1 + 15
    assert list(lines_of(report, "Mode B at K = 3,3,2")) == ["random", "vlm (qwen)"]
    for rate, value in (("conditional", "16.62 n 190/?"), ("unconditional", "9.16 n 190/?")):
        assert lines_of(report, f"Mode B at K = 6,3,2: {rate}")["paper: Random sampling"][1] == value


def test_the_papers_row_stands_beside_no_scorer_of_the_same_name_by_others(tmp_path: Path) -> None:
    theirs = report_of(tmp_path, *over("a", scorer="random", origin="/home/u/mine.py"))
    labels = list(lines_of(theirs, "Mode B at"))
    assert labels[0] == "random (not pathnav's: mine.py)" and "paper: Random sampling" not in labels


def test_without_a_positive_tile_there_is_no_hit_rate_and_no_paper(tmp_path: Path) -> None:
    healthy = report_of(tmp_path, *over("ab", NO_TUMOUR))
    text = render(healthy)
    assert not [title for title in titles(healthy) if title.startswith(("Mode B at", "K sweep"))]
    assert "paper" not in text and "precision" in text
    assert "Without a positive tile, and so in no hit rate, but in precision and effort: a.svs, b.svs." in text


def test_without_any_annotation_only_answers_and_effort_are_told(tmp_path: Path) -> None:
    blind = report_of(tmp_path, exploration("a", None))
    assert [title.split(":")[0].split(",")[0] for title in titles(blind)] == ["Kept tiles", "Answers", "Effort"]
    assert titles(blind)[0] == "Kept tiles: counts, over 1 slide" and tables(blind)[0].header[-1] == "kept"
    assert "Without an annotation, and so in no hit rate and no precision: a.svs." in render(blind)


def test_few_slides_are_marked(tmp_path: Path) -> None:
    text = render(report_of(tmp_path, *over("abc")))
    assert "40.00 [40.00, 40.00]* n 3/30" in text and "* Fewer than 5 slides" in text
    assert "40.00 [-]* n 1/10" in render(report_of(tmp_path / "one", *over("a")))


def test_five_slides_are_not_marked(tmp_path: Path) -> None:
    text = render(report_of(tmp_path, *over("abcde")))
    assert "40.00 [40.00, 40.00] n 5/50" in text and "* Fewer" not in text


# the K sweep


def test_the_sweep_has_a_line_a_schedule_and_the_papers_at_these_only(report: Report, tmp_path: Path) -> None:
    lines = lines_of(report, "K sweep")
    assert [label for label in lines if not label.startswith("paper")] == [
        *("random 3,3,2", "random 6,3,2", "vlm (qwen) 3,3,2", "vlm (qwen) 6,3,2")
    ]
    assert lines["paper: Random 6,3,2"] == ["30.70‡ n 45/?", "9.15‡ n 45/?", "0.87‡ n 45/?"]
    assert not [label for label in lines if label.startswith("paper") and not label.endswith("6,3,2")]
    assert "‡ The paper's K sweep mixes slide subsets" in render(report)


def test_a_cell_that_the_paper_leaves_empty_is_a_dash(tmp_path: Path) -> None:
    found = report_of(tmp_path, *over("a"), *over("a", schedule=[10, 5, 3]))
    assert lines_of(found, "K sweep")["paper: Gemini 10,5,3"] == ["-", "-", "-"]
    sweep_rows = found.as_json()["explorations"]["paper"]["sweep"]["rows"]
    (gemini,) = [row for row in sweep_rows if (row["name"], row["schedule"]) == ("Gemini", [10, 5, 3])]
    assert gemini["unconditional_hit"] is None


def test_lines_are_to_be_compared_by_the_unconditional_rate(report: Report, tmp_path: Path) -> None:
    assert "compare lines by the unconditional one" in render(report)
    assert "compare lines" not in render(report_of(tmp_path / "one", *over("a")))


def test_one_schedule_is_no_sweep(tmp_path: Path) -> None:
    text = render(report_of(tmp_path, *over("a"), *over("a", scorer="random", schedule=[3, 3, 3])))
    assert "K sweep" not in text and "‡" not in text


def test_schedules_over_different_slides_are_no_sweep(tmp_path: Path) -> None:
    assert not lines_of(report_of(tmp_path, *over("ab"), *over("a", SMALLER, schedule=[3, 3, 2])), "K sweep")


# comparability


def test_a_lost_slide_puts_its_row_into_a_table_of_its_own(tmp_path: Path) -> None:
    records = [*over("abc"), *over("abc", scorer="tissue-density"), *over("ab", scorer="random")]
    found = report_of(tmp_path, *records, exploration("c", scorer="random", **LOST))
    hits = {title: list(lines_of(found, title)) for title in titles(found) if title.startswith("Mode B at")}
    first, second = [title for title in hits if "unconditional" in title]
    assert first.endswith("over 3 slides, set 1") and second.endswith(
        "over 2 of 3 slides (c.svs lost to infrastructure), set 2"
    )
    assert [label for label in hits[first] if not label.startswith("paper")] == ["tissue-density", "vlm"]
    assert hits[second] == ["random", "paper: Random sampling"]
    assert "they must not be compared" in render(found)


def test_a_slide_that_is_not_finished_is_named_so(tmp_path: Path) -> None:
    text = render(report_of(tmp_path, *over("ab"), *over("a", scorer="random"), planned=4))
    assert (
        "over 1 of 2 slides (b.svs not finished), set 2" in text and "3 of 4 searches answered, 1 not finished" in text
    )


def test_other_tiles_stand_in_other_tables_and_say_so(tmp_path: Path) -> None:
    found = report_of(tmp_path, *over("ab"), *over("ab", tile_px=512))
    assert {title.split(", over")[1] for title in titles(found) if title.startswith("Mode B")} == {
        " 2 slides, tiles of 512 px, set 1",
        " 2 slides, tiles of 1024 px, set 2",
    }
    assert "vlm (tiles of 512 px)" in render(found) and "vlm (tiles of 1024 px)" in render(found)


def test_another_annotation_of_the_same_slides_is_another_table(tmp_path: Path) -> None:
    other = ((9, 9, 6, 4, 6), *COUNTS[1:])
    file = {"path": "folder/other.geojson", "classes": ["tumor", "necrosis"]}
    found = report_of(tmp_path, *over("a"), *over("a", other, annotation=file))
    assert len([title for title in titles(found) if title.startswith("Mode B at") and "unconditional" in title]) == 2
    assert "vlm (annotation a.geojson: tumor)" in render(found)
    assert "vlm (annotation other.geojson: tumor, necrosis)" in render(found)


def test_seeds_settings_and_filling_up_tell_rows_apart(tmp_path: Path) -> None:
    records = [*over("a"), *over("a", seed=8), *over("a", seed=8, fill_to_k=True), *over("a", min_tissue=0.0)]
    labels = [label for label in lines_of(report_of(tmp_path, *records), "Mode B at") if "paper" not in label]
    assert sorted(labels) == [
        "vlm (min tissue 0.01; filled to K; seed 8)",
        "vlm (min tissue 0.01; seed 7)",
        "vlm (min tissue 0.01; seed 8)",
        "vlm (min tissue 0; seed 7)",
    ]


def test_code_alone_is_told_apart_by_its_hash(tmp_path: Path) -> None:
    records = [*over("a", configuration="1234567890"), *over("a", configuration="abcdefghij")]
    text = render(report_of(tmp_path, *records))
    assert "vlm (configuration 1234567)" in text and "vlm (configuration abcdefg)" in text


def test_many_missing_slides_are_all_named_in_a_note(tmp_path: Path) -> None:
    lost = [exploration(slide, scorer="random", **LOST) for slide in "bcdef"]
    text = render(report_of(tmp_path, *over("abcdef"), *over("a", scorer="random"), *lost))
    assert "over 1 of 6 slides (b.svs, c.svs, d.svs and 2 more lost to infrastructure), set 2" in text
    assert "Set 2 lacks b.svs (lost to infrastructure), c.svs" in text and "f.svs (lost to infrastructure)." in text


def test_a_row_without_a_finished_slide_is_told_and_has_no_table(tmp_path: Path) -> None:
    found = report_of(tmp_path, exploration(**LOST))
    assert tables(found) == []
    assert "vlm at K = 6,3,2 has no table: 1 slide lost to infrastructure." in render(found)


# invariants


def test_true_output_breaks_no_invariant(report: Report) -> None:
    assert report.as_json()["explorations"]["broken_invariants"] == []
    assert "invariant broken" not in render(report)


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (((10, 10, 6, 7, 6), *COUNTS[1:]), "vlm at 2.5x with K = 6,3,2 keeps 7 positives, more than the optimum of 6"),
        (((10, 10, 6, 1, 6), *COUNTS[1:]), "vlm at 2.5x keeps 2 positives with K = 3,3,2 but 1 with K = 6,3,2"),
    ],
)
def test_a_doctored_record_breaks_an_invariant(tmp_path: Path, counts: tuple[Counts, ...], sentence: str) -> None:
    found = report_of(tmp_path, exploration("a", counts), exploration("a", SMALLER, schedule=[3, 3, 2]))
    assert f"invariant broken: {sentence}" in render(found)
    assert sentence in found.as_json()["explorations"]["broken_invariants"]


# the other tables


def told(report: Report, title: str, *named: str) -> dict[str, str]:
    """Return the cells of one line by their headings: of the table of a title, the line with these key cells."""
    (table,) = [table for table in tables(report) if table.title.startswith(title)]
    rows = [dict(zip(table.header, map(str, line.entries), strict=True)) for line in table.lines]
    (row,) = [row for row in rows if set(named) <= set(list(row.values())[: table.key_columns])]
    return row


def test_each_magnification_tells_optimum_precision_and_answers(report: Report) -> None:
    reach = told(report, "Reach of the search: rates in %, over 6 slides", "10x", "random", "6,3,2")
    assert reach["optimum"].startswith("40.00") and reach["optimum"].endswith("n 6/240")
    assert reach["oracle-normalised"].startswith("37.50") and reach["reachable"].startswith("50.00")
    kept = told(report, "Kept tiles", "10x", "random", "6,3,2")
    assert (kept["kept"], kept["precision"]) == ("72", "50.00 [50.00, 50.00] n 6/72")
    assert kept["unconditional, mean of slides"].endswith("n 6")
    answers = told(report, "Answers", "10x", "random", "6,3,2")
    assert answers["yes rate"].startswith("50.00") and answers["tie rate"].startswith("6.67")
    assert [answers[name] for name in ("tiles", "scored", "unparsed")] == ["1,920", "540", "0"]


def test_magnifications_stand_one_under_the_other(report: Report) -> None:
    for title in ("Reach", "Kept tiles", "Answers"):
        (table,) = [table for table in tables(report) if table.title.startswith(title)]
        assert [str(line.entries[0]) for line in table.lines] == ["2.5x"] * 4 + ["10x"] * 4 + ["40x"] * 4


def test_effort_is_per_slide_and_knows_what_is_unknown(report: Report) -> None:
    effort = told(report, "Effort, mean per slide", "random", "6,3,2")
    assert (effort["n slides/lost"], effort["calls"]) == ("6/0", "258.0 [258.0, 258.0]")
    (sent,) = [table for table in tables(report) if table.title.startswith("Models: what they were sent")]
    assert {str(line.entries[0]) for line in sent.lines} == {"vlm (qwen)"}
    assert told(report, "Models", "vlm (qwen)", "6,3,2")["tokens in"] == "unknown"


def test_calls_without_a_model_are_said_to_be_tiles(report: Report, tmp_path: Path) -> None:
    sentence = "A scorer without a model makes no requests: its calls are the tiles that it scored."
    assert sentence in render(report)
    assert sentence not in render(report_of(tmp_path / "asking", *over("a", model="qwen")))


def test_tables_of_a_whole_cohort_are_read_at_160_columns(tmp_path: Path) -> None:
    """190 slides of 153,000 tiles, as many as the paper's, with the longest name of a model in it."""
    counts = tuple((c[0] * 100, c[1] * 100, c[2] * 9, c[3], c[4] * 9) for c in COUNTS)
    records = [
        exploration(f"slide-{number}", counts, scorer=scorer, model=model, configuration=scorer, schedule=schedule)
        for number in range(190)
        for scorer, model in (("random", None), ("vlm", "LLaMA3-LLaVA-Next-8B"))
        for schedule in ([6, 3, 2], [10, 5, 3])
    ]
    lines = render(report_of(tmp_path, *records)).split("\nMode B at", 1)[1].split("\nA scorer without")[0].splitlines()
    assert max(map(len, lines)) <= 160


def test_titles_tell_the_slides_that_rates_speak_of(tmp_path: Path) -> None:
    found = report_of(tmp_path, *over("ab"), *over("c", NO_TUMOUR), planned=3)
    both = "over 3 slides, 2 of them with positive tiles"
    assert {title.split(", ", 1)[1].removeprefix("rates in %, ") for title in titles(found)[:4]} == {both}
    assert titles(found)[4:] == [
        "Answers: rates in %, counts of tiles, over 3 slides",
        "Effort, mean per slide, over 3 slides",
    ]
    assert told(found, "Kept tiles", "2.5x")["precision"].endswith("n 3/18")
    assert told(found, "Reach", "2.5x")["optimum"].endswith("n 2/20")


def test_phantoms_stub_and_control_are_named(tmp_path: Path) -> None:
    records = [*over("a", phantom=True, model="stub-pixel-reader"), *over("a", scorer="oracle", phantom=True)]
    text = render(report_of(tmp_path, *records))
    assert "1 of 1 slide searched is generated by pathnav (phantoms)" in text
    assert "vlm (stub-pixel-reader, not a model)" in text and "oracle (control)" in text
    assert "The scorer oracle is a control" in text
