"""The tool that shows a box of the slide and costs one ROI."""

from typing import Any, ClassVar

from pydantic import BaseModel, Field, field_validator

from pathnav.localise import Environment, ToolReply


class ExtractRoi:
    """Show the pixels of a box, cut to the search region."""

    name: ClassVar[str] = "extract_roi"
    description: ClassVar[str] = (
        "Look at a box of the slide. The smaller the box, the higher the magnification at which it is shown. The part "
        "outside the search region is cut off. Costs one ROI if pixels are returned."
    )

    box_arguments: ClassVar[tuple[str, ...]] = ("x", "y", "w", "h")
    box_results: ClassVar[tuple[str, ...]] = ("box", "requested")

    class Arguments(BaseModel):
        """Top-left corner and extent in level-0 pixels, and why."""

        x: float = Field(description="left edge of the box, level-0 px")
        y: float = Field(description="top edge of the box, level-0 px")
        w: float = Field(description="width of the box, level-0 px, at least 1")
        h: float = Field(description="height of the box, level-0 px, at least 1")
        reason: str = Field(default="", description="why you look there, one sentence")

        @field_validator("reason", mode="before")
        @classmethod
        def _any_text(cls, value: Any) -> str:
            return "" if value is None else str(value)

    def call(self, environment: Environment, arguments: Arguments) -> ToolReply:
        """Return the image with its true box."""
        box = environment.box([arguments.x, arguments.y, arguments.w, arguments.h])
        view = environment.extract_roi(box, arguments.reason)
        content = view.facts()
        if environment.rois[-1].cut:
            content["note"] = "the requested box was cut to the search region"
            content["requested"] = box.as_list()
        return ToolReply(content, view)
