"""Tools: the paper's three, a user's own, and as a model with coordinates of its own reads and calls them."""

import json
from pathlib import Path

import numpy as np
import pytest

from pathnav.cohort.query import Query
from pathnav.errors import PluginError
from pathnav.geometry import Box
from pathnav.localise import Environment, Outcome
from pathnav.localise.coordinates import Coordinates
from pathnav.localise.tool import DEFAULT_TOOLS, OfferedTools, function_schema, load_tools
from pathnav.model.profile import BoxForm, Frame, Placement, Profile, ToolCalling
from pathnav.slide import Slide
from support.chat_server import Answer, call, say
from support.playing import Played

OWN_TOOL = """
from pydantic import BaseModel, Field
from pathnav.localise import ToolReply


class Centre:
    name = "centre"
    description = "The centre of the search region."

    class Arguments(BaseModel):
        digits: int = Field(description="decimal places")

    def call(self, environment, arguments):
        return ToolReply({"centre": [round(c, arguments.digits) for c in environment.query.region.centre]})
"""
THOUSAND = Profile(frame=Frame.THOUSAND, box=BoxForm.XYXY)


def look(image: int | None, bbox: object) -> Answer:
    return call("extract_roi", {"bbox": bbox, "reason": "", **({} if image is None else {"image": image})})


def finish(image: int | None, bbox: object) -> Answer:
    named = {} if image is None else {"image": image}
    return call("finish_and_report", {"conclusion": "", "bbox": bbox, "confidence": 0.5, **named})


def test_the_papers_tools_have_its_argument_names_each_described_with_its_unit_and_marked_required() -> None:
    schemas = [function_schema(tool)["function"] for tool in load_tools(DEFAULT_TOOLS).values()]
    assert {schema["name"]: list(schema["parameters"]["properties"]) for schema in schemas} == {
        "get_image_info": [],
        "extract_roi": ["x", "y", "w", "h", "reason"],
        "finish_and_report": ["conclusion", "bbox", "confidence"],
    }
    for parameters in (schema["parameters"] for schema in schemas):
        assert parameters["required"] == list(parameters["properties"])
        for name, field in parameters["properties"].items():
            assert name in ("reason", "conclusion", "confidence") or "level-0 px" in field["description"]


def test_a_tool_from_a_file_is_offered_and_called(tmp_path: Path, slide: Slide, query: Query) -> None:
    (tmp_path / "own.py").write_text(OWN_TOOL)
    offered = OfferedTools(load_tools([*DEFAULT_TOOLS, f"{tmp_path / 'own.py'}:Centre"]), Coordinates())
    assert offered.call(Environment(slide, query), "centre", {"digits": 1}, []).content == {"centre": [512, 512]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("class Centre:\n    name = 'centre'\n", "has no 'description'"),
        (OWN_TOOL.replace('"centre"', '"extract_roi"', 1), "two tools"),
    ],
)
def test_a_tool_that_breaks_the_contract_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "own.py").write_text(text)
    with pytest.raises(PluginError, match=said):
        load_tools([*DEFAULT_TOOLS, f"{tmp_path / 'own.py'}:Centre"])


def test_a_tool_that_fails_by_itself_is_named(slide: Slide, query: Query, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_TOOL.replace("return ToolReply", "1 / 0; return ToolReply"))
    with pytest.raises(PluginError, match="tool 'centre' failed: ZeroDivisionError"):
        Played(slide, query, [call("centre", {"digits": 1})], tools=[f"{tmp_path / 'own.py'}:Centre"])


def test_boxes_are_read_in_the_image_that_the_model_names(slide: Slide, query: Query) -> None:
    answers = [look(0, [250, 250, 750, 500]), look(1, [0, 0, 500, 500]), finish(2, [0, 0, 1000, 1000])]
    played = Played(slide, query, answers, profile=THOUSAND, guides=False)
    assert played.outcome is Outcome.FINISHED
    assert [roi.box for roi in played.environment.rois] == [Box(256, 256, 512, 256), Box(256, 256, 256, 128)]
    made = played.environment.report_made
    assert made is not None and made.box == Box(256, 256, 256, 128)
    arrived = np.asarray(played.requests[1].images[1]).astype(int)
    truth = slide.read(Box(256, 256, 512, 256), magnification=40.0).astype(int)
    assert arrived.shape == truth.shape and np.abs(arrived - truth).mean() < 2


def test_nothing_that_such_a_model_reads_counts_level_0_pixels(slide: Slide, query: Query) -> None:
    looks = [look(0, [250, 250, 750, 500]), look(1, [0, 0, 5, 2])]
    played = Played(slide, query, [call("get_image_info", {}), *looks, finish(1, [0, 0, 9, 9])], profile=THOUSAND)
    last = played.requests[-1]
    told = "\n".join(part["text"] for part in last.parts if part["type"] == "text")
    told += json.dumps(last.body["tools"])
    assert "level-0" not in told.replace("Facts of the slide: size in level-0 px", "")
    assert "1024" not in told.replace("1024 x 1024 px", "")
    assert "Search region (coordinates of image 0): [0, 0, 1000, 1000]" in told
    assert "Target size (coordinates of image 0): 500 x 500" in told
    assert "image 1, 512 x 256 px at 40x, box [250, 250, 750, 500] of image 0" in told


def test_the_schema_shows_one_box_in_the_models_order(slide: Slide, query: Query) -> None:
    played = Played(slide, query, [finish(0, [0, 0, 9, 9])], profile=Profile(frame=Frame.THOUSAND_YX, box=BoxForm.XYXY))
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in played.requests[0].body["tools"]}
    assert list(tools["extract_roi"]["properties"]) == ["image", "bbox", "reason"]
    assert "[y1, x1, y2, x2]" in tools["finish_and_report"]["properties"]["bbox"]["description"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (look(7, [0, 0, 9, 9]), "0 to 1, got 7"),
        (look(None, [0, 0, 9, 9]), "image must be the number of the image"),
        (look(1, [900, 900, 100, 100]), "x2 > x1"),
        (look(1, [2000, 2000, 2100, 2100]), "x runs from 0 to 1000"),
        (look(1, "near the middle"), "four numbers [x1, y1, x2, y2]"),
        (look(1, [1, 2, None, 4]), "four numbers [x1, y1, x2, y2]"),
    ],
)
def test_what_is_no_box_of_an_image_costs_nothing_and_is_answered(
    slide: Slide, query: Query, answer: Answer, said: str
) -> None:
    played = Played(slide, query, [look(0, [0, 0, 500, 500]), answer, finish(0, [0, 0, 9, 9])], profile=THOUSAND)
    assert played.environment.rois_used == 1 and played.outcome is Outcome.FINISHED
    assert said in played.replies()[1]["error"]


def test_corners_may_be_in_level_0_pixels_and_written_as_text(slide: Slide, query: Query) -> None:
    answers = [look(None, [100, 200, 400, 400]), finish(None, "[100, 200, 612, 712]")]
    played = Played(slide, query, answers, profile=Profile(box=BoxForm.XYXY))
    made = played.environment.report_made
    assert made is not None and made.box == Box(100, 200, 512, 512)
    assert "level-0 box [100, 200, 400, 400]" in played.requests[1].text
    assert "image" not in played.requests[0].body["tools"][1]["function"]["parameters"]["properties"]


@pytest.mark.parametrize("frame", list(Frame))
@pytest.mark.parametrize("tools", list(ToolCalling))
@pytest.mark.parametrize("placement", list(Placement))
def test_every_profile_ends_an_episode_well(
    slide: Slide, query: Query, frame: Frame, tools: ToolCalling, placement: Placement
) -> None:
    whole = 0.4 if frame is Frame.UNIT else 400
    boxed = {"bbox": [0, 0, whole, whole], **({} if frame is Frame.LEVEL0 else {"image": 0})}
    looked = {"x": 0, "y": 0, "w": whole, "h": whole} if frame is Frame.LEVEL0 else boxed
    named = [("extract_roi", looked), ("extract_roi", looked), ("finish_and_report", boxed)]
    if tools is ToolCalling.TEXT:
        made = [say(f"I see. {json.dumps({'tool': name, 'arguments': arguments})}") for name, arguments in named]
    else:
        made = [call(name, arguments) for name, arguments in named]
    profile = Profile(frame=frame, tools=tools, placement=placement, images_live=2)
    played = Played(slide, query, made, profile=profile)
    assert played.outcome is Outcome.FINISHED and played.environment.rois_used == 2
    assert len(played.requests[2].images) == 2
    roles = [message["role"] for message in played.requests[2].messages]
    assert ("tool" in roles) is (tools is ToolCalling.NATIVE)
