"""Tools: the paper's three, their schemas, and a user's own from a file."""

from pathlib import Path

import pytest

from pathnav.cohort.query import Query
from pathnav.errors import PluginError
from pathnav.localise import Environment
from pathnav.localise.coordinates import Coordinates
from pathnav.localise.tool import DEFAULT_TOOLS, OfferedTools, function_schema, load_tools
from pathnav.slide import Slide

OWN_TOOL = '''
"""A tool that tells where the search region's centre is."""

from pydantic import BaseModel, Field
from pathnav.localise import ToolReply


class Centre:
    name = "centre"
    description = "The centre of the search region."

    class Arguments(BaseModel):
        digits: int = Field(description="decimal places")

    def call(self, environment, arguments):
        return ToolReply({"centre": [round(c, arguments.digits) for c in environment.query.region.centre]})
'''


def test_the_three_tools_have_the_papers_names_and_argument_names() -> None:
    parameters = {
        name: list(function_schema(tool)["function"]["parameters"]["properties"])
        for name, tool in load_tools(DEFAULT_TOOLS).items()
    }
    assert parameters == {
        "get_image_info": [],
        "extract_roi": ["x", "y", "w", "h", "reason"],
        "finish_and_report": ["conclusion", "bbox", "confidence"],
    }


def test_every_argument_is_described_with_its_unit_and_marked_required() -> None:
    for tool in load_tools(DEFAULT_TOOLS).values():
        parameters = function_schema(tool)["function"]["parameters"]
        assert parameters["required"] == list(parameters["properties"])
        for name, field in parameters["properties"].items():
            assert field["description"]
            assert name in ("reason", "conclusion", "confidence") or "level-0 px" in field["description"]


def test_a_tool_from_a_file_is_offered_and_called(tmp_path: Path, slide: Slide, query: Query) -> None:
    (tmp_path / "own.py").write_text(OWN_TOOL)
    tools = load_tools([*DEFAULT_TOOLS, f"{tmp_path / 'own.py'}:Centre"])
    offered = OfferedTools(tools, Coordinates())
    reply = offered.call(Environment(slide, query), "centre", {"digits": 1}, [])
    assert reply.content == {"centre": [512, 512]}


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
