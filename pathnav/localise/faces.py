"""Tools as a model sees them: with its own coordinates in place of level-0 boxes.

A tool says which of its arguments make a box (`box_arguments`), and which entries of its replies are boxes
(`box_results`) or sizes (`size_results`), all in level-0 pixels. To a model with other coordinates they are shown as
one `bbox` in its own order and, where these are places in an image, with the number of that image.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pathnav.errors import RoiError
from pathnav.geometry import Box
from pathnav.localise.coordinates import Coordinates, Shown
from pathnav.localise.environment import Environment
from pathnav.localise.tool import Tool, ToolReply, call_tool, function_schema, refusal

BBOX, IMAGE = "bbox", "image"


@dataclass(frozen=True, slots=True)
class Faces:
    """The tools of an episode in a model's coordinates.

    Args:
        tools: The tools on offer, by name.
        coordinates: How the model writes boxes.
    """

    tools: Mapping[str, Tool]
    coordinates: Coordinates

    def only(self, name: str) -> "Faces":
        """Return the face of one tool."""
        return Faces({name: self.tools[name]}, self.coordinates)

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools as OpenAI function schemas."""
        return [self._schema(tool) for tool in self.tools.values()]

    def call(
        self, environment: Environment, name: str, arguments: Mapping[str, Any] | None, shown: Sequence[Shown]
    ) -> ToolReply:
        """Return the reply to one call; whatever is wrong with it is said so that the model can mend it.

        Args:
            environment: What the tools act on.
            name: As the model wrote it.
            arguments: As parsed, or None where they were not a JSON object.
            shown: The images so far, the overview first.
        """
        tool = self.tools.get(name)
        if self.coordinates.are_plain or tool is None or arguments is None:
            return call_tool(self.tools, environment, name, arguments)
        place = shown[0]
        if names := _box_arguments(tool):
            try:
                place = self._image(arguments, shown)
                arguments = self._converted(arguments, names, place)
            except RoiError as error:
                return refusal(f"{name}: {error}", parsed=False)
        reply = call_tool(self.tools, environment, name, arguments)
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
                found[name] = self.size(value, place)
            else:
                found[name] = value
        if self.coordinates.are_in_images and (set(boxes) | set(sizes)) & set(content):
            found["coordinates_of_image"] = place.number
        return found

    def size(self, extent_px: Sequence[float], place: Shown) -> list[float]:
        """Return a width and height in level-0 pixels as the model counts them in an image."""
        if not self.coordinates.are_in_images:
            return list(extent_px)
        width, height = self.coordinates.extent(place)
        across, down = width / place.box.width, height / place.box.height
        return [float(f"{extent_px[0] * across:.4g}"), float(f"{extent_px[1] * down:.4g}")]


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
