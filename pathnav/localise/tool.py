"""The contract of a tool, and how a call of a model, in its own coordinates, becomes a reply it can act on.

To a model with other coordinates than level-0 `[x, y, w, h]` the boxes of a tool's arguments are shown as one `bbox` in
its own order and, where these are places in an image, with the number of that image.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ValidationError

from pathnav.errors import BudgetExhausted, PathnavError, PluginError, RoiError
from pathnav.geometry import Box
from pathnav.localise.coordinates import Coordinates, Shown
from pathnav.localise.environment import Environment
from pathnav.localise.views import View
from pathnav.plugins import Kind, load

REPORT_TOOL = "finish_and_report"
DEFAULT_TOOLS = ("get_image_info", "extract_roi", REPORT_TOOL)
BBOX, IMAGE = "bbox", "image"


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What a tool answers: plain JSON for the model, and an image to show with it.

    `parsed` is False where the call was not understood at all: unknown tool, or arguments that do not validate.
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
                raise PluginError(f"tool {spec!r} has no {attribute!r}; it needs name, description, Arguments and call")
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


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The tools on offer by name, and the coordinates in which the model writes boxes."""

    tools: Mapping[str, Tool]
    coordinates: Coordinates

    def only(self, name: str) -> "OfferedTools":
        """Return one of the tools alone."""
        return OfferedTools({name: self.tools[name]}, self.coordinates)

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools as OpenAI function schemas."""
        return [self._schema(tool) for tool in self.tools.values()]

    def call(
        self, environment: Environment, name: str, arguments: Mapping[str, Any] | None, shown: Sequence[Shown]
    ) -> ToolReply:
        """Return the reply to one call; whatever is wrong with it is said so that the model can mend it.

        `arguments` are None where they were not a JSON object; of the images `shown` so far the overview is the first.
        """
        tool = self.tools.get(name)
        if tool is None:
            return _refusal(f"there is no tool {name!r} to call now; available: {', '.join(self.tools)}", parsed=False)
        if arguments is None:
            return _refusal(f"the arguments of {name} were not a valid JSON object; {_expected(tool)}", parsed=False)
        if self.coordinates.are_plain:
            return _called(tool, environment, arguments)
        place = shown[0]
        if names := _box_arguments(tool):
            try:
                place = self._image(arguments, shown)
                arguments = self._converted(arguments, names, place)
            except RoiError as error:
                return _refusal(f"{name}: {error}", parsed=False)
        reply = _called(tool, environment, arguments)
        return ToolReply(self._content(tool, reply.content, place), reply.view, reply.parsed)

    def _schema(self, tool: Tool) -> dict[str, Any]:
        """Return a tool's schema with the model's box in the place of the tool's own."""
        schema = function_schema(tool)
        names = _box_arguments(tool)
        if self.coordinates.are_plain or not names:
            return schema
        parameters = schema["function"]["parameters"]
        ours = self._box_fields()
        rest = {name: field for name, field in parameters["properties"].items() if name not in names}
        properties = {**ours, **rest}
        parameters = {**parameters, "properties": properties, "required": list(properties)}
        return {**schema, "function": {**schema["function"], "parameters": parameters}}

    def _box_fields(self) -> dict[str, Any]:
        order, units = self.coordinates.order, "level-0 px"
        fields: dict[str, Any] = {}
        if self.coordinates.are_in_images:
            fields[IMAGE] = {"type": "integer", "description": "number of the image that bbox is in; 0: the overview"}
            units = "the coordinates of that image"
        fields[BBOX] = {
            "type": "array",
            "items": {"type": "number"},
            "minItems": 4,
            "maxItems": 4,
            "description": f"the box {order} in {units}",
        }
        return fields

    def _image(self, arguments: Mapping[str, Any], shown: Sequence[Shown]) -> Shown:
        """Return the image that a call means.

        Raises:
            RoiError: If it names none, and more than one was shown, or one that does not exist.
        """
        if not self.coordinates.are_in_images:
            return shown[0]
        number = arguments.get(IMAGE)
        if number is None and len(shown) == 1:
            return shown[0]
        if isinstance(number, str) and number.strip().isdigit():
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int | float) or number not in range(len(shown)):
            raise RoiError(
                f"{IMAGE} must be the number of the image that {BBOX} is in, 0 to {len(shown) - 1}, got {number!r}"
            )
        return shown[int(number)]

    def _converted(self, arguments: Mapping[str, Any], names: Sequence[str], place: Shown) -> dict[str, Any]:
        """Return the arguments as the tool takes them.

        Raises:
            RoiError: If there is no usable box.
        """
        numbers = _numbers(arguments.get(BBOX), self.coordinates.order)
        box = self.coordinates.to_level0(numbers, place).as_list()
        rest = {name: value for name, value in arguments.items() if name not in (BBOX, IMAGE)}
        return {**rest, **(dict(zip(names, box, strict=True)) if len(names) == 4 else {names[0]: box})}

    def _content(self, tool: Tool, content: Mapping[str, Any], place: Shown) -> dict[str, Any]:
        """Return a reply with its boxes and sizes in the coordinates of the image that was meant."""
        boxes, sizes = getattr(tool, "box_results", ()), getattr(tool, "size_results", ())
        found: dict[str, Any] = {}
        for name, value in content.items():
            if name in boxes and value is not None:
                found[name] = self.coordinates.to_model(Box.from_list(value), place)
            elif name in sizes and self.coordinates.are_in_images:
                found[name] = self.coordinates.size(value, place)
            else:
                found[name] = value
        if self.coordinates.are_in_images and (set(boxes) | set(sizes)) & set(content):
            found["coordinates_of_image"] = place.number
        return found


def _called(tool: Tool, environment: Environment, arguments: Mapping[str, Any]) -> ToolReply:
    """Return the reply to a call with level-0 boxes."""
    try:
        checked = tool.Arguments.model_validate(dict(arguments))
    except ValidationError as error:
        return _refusal(f"{tool.name}: {_faults(error)}; {_expected(tool)}", parsed=False)
    try:
        return tool.call(environment, checked)
    except (RoiError, BudgetExhausted) as error:
        return _refusal(str(error))
    except PathnavError:
        raise
    except Exception as error:
        sentence = f"tool {tool.name!r} failed: {type(error).__name__}: {error}"
        raise PluginError(sentence, remedy="mend the tool") from error


def _refusal(sentence: str, parsed: bool = True) -> ToolReply:
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


def _box_arguments(tool: Tool) -> tuple[str, ...]:
    return tuple(getattr(tool, "box_arguments", ()))


def _numbers(value: Any, order: str) -> list[float]:
    """Return four numbers that were written as a list, or as the text of one.

    Raises:
        RoiError: If they were not.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, list) or len(value) != 4:
        raise RoiError(f"{BBOX} must be four numbers {order}")
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in value):
        raise RoiError(f"{BBOX} must be four numbers {order}, got {value}")
    try:
        return [float(number) for number in value]
    except OverflowError as error:
        raise RoiError(f"{BBOX} must be four finite numbers {order}") from error
