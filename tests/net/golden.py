"""What is run on both sides. `@OUT`, `@SLIDES`, `@SHARED` and `@URL-persona` are filled in for each of them.

Each agent, scorer, control, sweep, profile and reader comes once at least, on as few and small slides as show it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
OWN = "@NET/own_agent.py:CornerAndCentre"
STUB = "stub-pixel-reader"
HGSC = "@SHARED/slides/virtual-hgsc-groundtruth"
AGENTS = ["random", "grid-centroid", "tissue-density", "tissue-weighted", "parent-centre", "oracle", "vlm"]
SCORERS = ["vlm", "random", "tissue-density", "nuclear-density", "oracle"]
ASKED = ["--model", STUB, "--base-url", "@URL-plain"]
TRUTHS: Mapping[str, Json] = {
    "hgsc.tree.json": {
        "format": "pathnav-tree-1",
        "slides": [
            {
                "slide": "virtual-hgsc-groundtruth.svs",
                "organ": "ovary",
                "nodes": [
                    {
                        "id": "a",
                        "magnification": 2.5,
                        "box": [800, 3600, 2400, 2400],
                        "parent": None,
                        "finding": "Nests",
                    },
                    {
                        "id": "a1",
                        "magnification": 10,
                        "box": [1200, 4000, 1000, 900],
                        "parent": "a",
                        "finding": "Sheets",
                    },
                    {
                        "id": "a2",
                        "magnification": 10,
                        "box": [2100, 4700, 900, 800],
                        "parent": "a",
                        "finding": "sheets",
                    },
                    {
                        "id": "a1i",
                        "magnification": 40,
                        "box": [1500, 4300, 300, 280],
                        "parent": "a1",
                        "finding": "Nuclei",
                    },
                ],
            }
        ],
    },
    # Its scanned area is [2304, 1792, 2048, 2816]; both boxes stick out of it.
    "mirax.tree.json": {
        "format": "pathnav-tree-1",
        "slides": [
            {
                "slide": "mirax-sparse-bounds.mrxs",
                "nodes": [
                    {
                        "id": "m",
                        "magnification": 2.5,
                        "box": [2200, 1700, 1200, 1000],
                        "parent": None,
                        "finding": "Fat",
                    },
                    {"id": "m1", "magnification": 10, "box": [2250, 1750, 500, 400], "parent": "m", "finding": "Edge"},
                ],
            }
        ],
    },
    "mirax.geojson": {
        "type": "Feature",
        "properties": {"objectType": "annotation", "classification": {"name": "tumor"}},
        "geometry": {
            "type": "Polygon",
            "coordinates": [[[200, 300], [1500, 300], [1500, 1700], [200, 1200], [200, 300]]],
        },
    },
}


NOT_REPLAYED = ("budgets", "jitter", "swapped")
"""Scenarios whose replay would take a minute and show nothing that the others do not."""


@dataclass(frozen=True)
class Part:
    """Scenarios, each run, planned, reported and replayed, and further commands."""

    scenarios: Mapping[str, Json] = field(default_factory=dict)
    commands: tuple[list[str], ...] = ()


def model(persona: str = "plain", profile: str = "openai") -> Json:
    """Return a scenario's model: a persona of the starting commit's stub, asked after a profile."""
    return {"name": STUB, "base_url": f"@URL-{persona}", "profile": profile}


def phantom(name: str) -> Json:
    """Return a phantom slide of a cohort."""
    files = f"@SLIDES/{name}"
    truth = {"tree": f"{files}.tree.json", "annotation": f"{files}.geojson", "tumour_classes": ["tumor"]}
    return {"path": f"{files}.tiff", **truth}


def scenario(slides: list[Json], sample: Json | None = None, **rest: Any) -> Json:
    """Return a scenario about some slides."""
    drawn = {} if sample is None else {"sample": sample}
    return {"format": "pathnav-scenario-1", "cohort": {"slides": slides, **drawn}, "model": model(), "seed": 7, **rest}


HGSC_SLIDE = {"path": f"{HGSC}.svs", "tree": "@SLIDES/hgsc.tree.json"}
HGSC_TRUTH = {"annotation": f"{HGSC}.geojson", "tumour_classes": ["tumor"]}
DICOM = "@SHARED/slides/CMU-1-Small-Region-dicom/1.2.826.0.1.3680043.8.498.46702941076792458794464453066648511350.dcm"
MIRAX = {"path": "@SHARED/slides/mirax-sparse-bounds.mrxs", "tree": "@SLIDES/mirax.tree.json"}
ONE_EACH = {"queries_per_magnification": 1, "seed": 7}
MORE_AGENTS = [
    OWN,
    {"vlm": {"guides": False, "view_px": 512}},
    {"vlm": {"hints": OWN, "hint_count": 2}},
]


def parts(shared: Path) -> dict[str, Part]:
    """Return all parts by name, in the order in which they are run."""
    return {
        "mode-a": _mode_a(),
        "personas": _personas(),
        "mode-b": _mode_b(),
        "single": _single(),
        "files": _files(shared),
    }


def _mode_a() -> Part:
    p1, p2, p3 = (phantom(name) for name in ("p1", "p2", "p3"))
    base = {"agents": [*AGENTS, *MORE_AGENTS], "budget": {"sweep": ["base", [2, 2, 1]]}}
    blank = {"agents": ["tissue-density", OWN, "vlm"], "budget": [3, 3, 3], "blank_images": True}
    shaken = {"agents": ["random", "tissue-weighted", "vlm"], "budget": [3, 3, 3]}
    return Part(
        {
            "budgets": scenario([p1, HGSC_SLIDE, MIRAX], ONE_EACH, localise=base),
            "jitter": scenario([p1], ONE_EACH, localise={**shaken, "jitter": {"sweep": [0, 0.25]}, "repeats": 2}),
            "swapped": scenario([p1, p2], ONE_EACH, localise={**shaken, "swapped_findings": True}),
            "blank": scenario([p2], ONE_EACH, localise=blank),
            "sampled": scenario(
                [p1, p2, p3],
                {"slides": 2, "stratify": "organ", "queries_per_magnification": 4, "seed": 3},
                localise={"agents": ["random", "parent-centre"], "magnifications": [10, 40]},
            ),
            "settings": scenario(
                [p2],
                ONE_EACH,
                localise={"agents": ["vlm"], "views": {"jpeg_quality": 70}, "magnifications": [10]},
                decoding={"temperature": {"sweep": [0, 0.5]}, "image_detail": "low"},
            ),
        }
    )


def _personas() -> Part:
    named = [("plain", "text"), ("text-only", "text"), ("overbudget", "openai"), ("garrulous", "openai")]
    more = [("strict", "vllm"), ("mistral-order", "mistral"), ("plain", "ollama"), ("no-logprobs", "llama-cpp")]
    failing = [("truncated-json", "openai"), ("html-error", "sglang"), ("strict", "openai")]
    return Part(
        {
            persona + "-" + profile: scenario(
                [phantom("p2")],
                ONE_EACH,
                model=model(persona, profile),
                localise={"agents": ["vlm"], "budget": [4, 3, 3]},
                explore={"scorers": ["vlm"], "schedule": [1, 1, 1], "tile_px": 256},
            )
            for persona, profile in (*named, *more, *failing)
        }
    )


def _mode_b() -> Part:
    sweep = {"sweep": [[1, 1, 1], [6, 3, 2], [10, 5, 3]]}
    free = [{"path": f"@SHARED/slides/{name}", "tumour_free": True} for name in ("CMU-1-Small-Region.svs",)]
    odd = [
        {**MIRAX, "annotation": "@SLIDES/mirax.geojson", "tumour_classes": ["tumor"], "relative_to_bounds": True},
        {"path": "@SHARED/slides/svs-no-mpp-no-appmag.svs", "objective_power": 20, "tumour_free": True},
        {"path": "@SHARED/slides/tiff-pyramid-0.5um.tif", "mpp": 0.5, "reader": "tiffslide", "tumour_free": True},
    ]
    return Part(
        {
            "schedules": scenario(
                [phantom("p1"), phantom("p3")], explore={"scorers": SCORERS, "schedule": sweep, "tile_px": 128}
            ),
            "real": scenario(
                [{**HGSC_SLIDE, **HGSC_TRUTH}, *free],
                explore={"scorers": SCORERS, "schedule": [3, 3, 2], "tile_px": 256},
            ),
            "odd": scenario(
                odd,
                explore={
                    "scorers": ["tissue-density", "random"],
                    "schedule": [2, 2, 1],
                    "tile_px": 128,
                    "min_tissue": 0,
                },
            ),
            "filled": scenario(
                [phantom("p2")],
                explore={
                    "scorers": ["oracle", {"vlm": {"target_text": "necrosis"}}],
                    "schedule": [3, 2, 2],
                    "tile_px": 256,
                    "min_tissue": 0.3,
                    "fill_to_k": True,
                },
            ),
        }
    )


def _single() -> Part:
    p1 = "@SLIDES/p1"
    asked = ["locate", f"{p1}.tiff", "--json", "--tree", f"{p1}.tree.json", "--query", "b3"]
    found = ["explore", f"{p1}.tiff", "--json", "--annotation", f"{p1}.geojson", "--tumour-class", "tumor"]
    cmu = "@SHARED/slides/CMU-1-Small-Region"
    free = ["--finding", "dense nuclei", "--magnification", "10"]
    return Part(
        commands=(
            [*asked, "--out", "@OUT/one", *ASKED],
            [*asked, "--out", "@OUT/one", "--agent", "tissue-weighted", "--seed", "3", "--budget", "4"],
            [*asked, "--no-guides", *ASKED, "--reader", "tiffslide"],
            [
                "locate",
                f"{cmu}.svs",
                "--json",
                *free,
                "--region",
                "100,200,1500,1800",
                "--target-size",
                "300,200",
                *ASKED,
            ],
            ["locate", DICOM, "--json", *free, "--agent", "tissue-density", "--objective-power", "20"],
            ["locate", f"{cmu}.svs", "--json", *free, "--agent", "grid-centroid"],
            [*found, "--out", "@OUT/one", "--tile-px", "128", "--scorer", "random", "--schedule", "4,2,2"],
            [*found, "--out", "@OUT/one", "--tile-px", "256", *ASKED, "--geojson", "@OUT/kept.geojson"],
            ["explore", f"{cmu}.svs", "--json", "--scorer", "nuclear-density", "--tile-px", "128", "--mpp", "0.5"],
            ["report", "@OUT/one", "--json"],
            ["@read", "@OUT/kept.geojson"],
        )
    )


def _files(shared: Path) -> Part:
    """Return what is said about every file of the shared folder, those that must be refused included."""
    slides = [path for path in sorted(shared.glob("slides/*")) if path.suffix != ".geojson"]
    cases = [path for path in sorted(shared.glob("cases/*/*")) if path.suffix in (".tif", ".svs")]
    drawn = [*sorted(shared.glob("annotations/*")), *shared.glob("slides/*.geojson"), *shared.glob("cases/*/*.*json")]
    drawn += [*shared.glob("cases/*/*.annotations")]
    inspected = [["inspect", str(path).replace(str(shared), "@SHARED"), "--json"] for path in (*slides, *cases)]
    striped = ["inspect", "@SHARED/slides/svs-40x-3levels.svs", "--json", "--reader", "tiffslide"]
    annotated = [["annotations", str(path).replace(str(shared), "@SHARED"), "--json"] for path in drawn]
    phantoms = [["annotations", f"@SLIDES/{name}.geojson", "--json"] for name in ("p1", "p2", "p3")]
    return Part(commands=(*inspected, striped, *annotated, *phantoms))
