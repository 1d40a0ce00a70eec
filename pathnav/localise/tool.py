"""The contract of a tool, and how a call of a model becomes a reply it can act on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ValidationError

from pathnav.errors import BudgetExhausted, PathnavError, PluginError, RoiError
from pathnav.localise.environment import Environment
from pathnav.localise.views import View
from pathnav.plugins import Kind, load

REPORT_TOOL = "finish_and_report"
DEFAULT_TOOLS = ("get_image_info", "extract_roi", REPORT_TOOL)


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What a tool answers.

    Args:
        content: Plain JSON for the model.
        view: An image to show with it.
        parsed: False where the call was not understood at all: unknown tool, or arguments that do not validate.
    """

    content: Mapping[str, Any]
    view: View | None = None
    parsed: bool = True


class Tool(Protocol):
    """A tool an agent may call: a name, a sentence, an argument schema, and a call on the environment.

    A tool may also say which of its arguments make a level-0 box (`box_arguments`: the name of one list `[x, y, w, h]`,
    or four names) and which entries of its replies are level-0 boxes (`box_results`) or extents (`size_results`):
    models with coordinates of their own are then shown these in theirs.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    Arguments: ClassVar[type[BaseModel]]

    def call(self, environment: Environment, arguments: Any) -> ToolReply:
        """Do what was asked with validated `Arguments`; RoiError and BudgetExhausted become replies."""


def load_tools(specs: Iterable[str]) -> dict[str, Tool]:
    """Return the tools of the given specifications by name, in order.

    Raises:
        PluginError: If one cannot be loaded, does not keep the contract, or a name comes twice.
    """
    tools: dict[str, Tool] = {}
    for spec in specs:
        tool = load(Kind.TOOL, spec).create()
        for attribute in ("name", "description", "Arguments", "call"):
            if not hasattr(tool, attribute):
                raise PluginError(
                    f"tool {spec!r} has no {attribute!r}; a tool has name, description, Arguments and call"
                )
        if tool.name in tools:
            raise PluginError(f"two tools are named {tool.name!r}; each needs a name of its own")
        tools[tool.name] = tool
    if REPORT_TOOL not in tools:
        raise PluginError(f"the tools must include {REPORT_TOOL!r}, without which no episode can end well")
    return tools


def function_schema(tool: Tool) -> dict[str, Any]:
    """Return a tool as an OpenAI function schema; every argument is marked required, so that models fill it in."""
    schema = tool.Arguments.model_json_schema()
    parameters = {
        "type": "object",
        "properties": {name: _plain(field) for name, field in schema["properties"].items()},
        "required": list(schema["properties"]),
    }
    if "$defs" in schema:
        parameters["$defs"] = schema["$defs"]
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def _plain(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return a property without pydantic's titles and defaults, which only cost tokens."""
    return {key: value for key, value in field.items() if key not in ("title", "default")}


def call_tool(
    tools: Mapping[str, Tool], environment: Environment, name: str, arguments: Mapping[str, Any] | None
) -> ToolReply:
    """Return the reply to one call; whatever is wrong with it is said so that the model can mend it.

    Args:
        tools: The tools that are offered now, by name.
        environment: What they act on.
        name: As the model wrote it.
        arguments: As parsed, or None where they were not a JSON object.
    """
    tool = tools.get(name)
    if tool is None:
        return refusal(f"there is no tool {name!r} to call now; available: {', '.join(tools)}", parsed=False)
    if arguments is None:
        return refusal(f"the arguments of {name} were not a valid JSON object; {_expected(tool)}", parsed=False)
    try:
        checked = tool.Arguments.model_validate(dict(arguments))
    except ValidationError as error:
        return refusal(f"{name}: {_faults(error)}; {_expected(tool)}", parsed=False)
    try:
        return tool.call(environment, checked)
    except (RoiError, BudgetExhausted) as error:
        return refusal(str(error))
    except PathnavError:
        raise
    except Exception as error:
        sentence = f"tool {name!r} failed: {type(error).__name__}: {error}"
        raise PluginError(sentence, remedy="mend the tool") from error


def refusal(sentence: str, parsed: bool = True) -> ToolReply:
    """Return the reply to a call that cannot be done."""
    return ToolReply({"error": sentence}, parsed=parsed)


def _expected(tool: Tool) -> str:
    fields = tool.Arguments.model_fields
    return "expected " + "; ".join(f"{name}: {field.description}" for name, field in fields.items())


def _faults(error: ValidationError) -> str:
    return ", ".join(_fault(fault["loc"], fault["msg"], fault["input"]) for fault in error.errors(include_url=False))


def _fault(place: tuple[int | str, ...], message: str, value: object) -> str:
    where = ".".join(str(part) for part in place) or "arguments"
    if message == "Field required":
        return f"{where} is missing"
    return f"{where}: {message[:1].lower()}{message[1:]}, got {str(value)[:60]!r}"
