"""The free tool that tells the facts of the slide."""

from typing import ClassVar

from pydantic import BaseModel

from pathnav.localise import Environment, ToolReply


class GetImageInfo:
    """Tell size, scale, levels, search region, target size and what is left of the budget."""

    name: ClassVar[str] = "get_image_info"
    description: ClassVar[str] = (
        "Facts of the slide: size in level-0 px, micrometres per pixel, objective power, levels and downsamples, "
        "search region, target size, ROIs left. Free."
    )

    box_results: ClassVar[tuple[str, ...]] = ("search_region", "scanned_area")
    size_results: ClassVar[tuple[str, ...]] = ("target_size_px",)

    class Arguments(BaseModel):
        """None."""

    def call(self, environment: Environment, arguments: Arguments) -> ToolReply:
        """Return the facts."""
        return ToolReply(environment.slide_facts())
