"""The tool that hands in the answer and ends the episode."""

import json
from typing import Any, ClassVar

from pydantic import BaseModel, Field, field_validator

from pathnav.localise import Environment, ToolReply


class FinishAndReport:
    """Hand in the box that the finding describes."""

    name: ClassVar[str] = "finish_and_report"
    description: ClassVar[str] = (
        "Hand in your answer and end the task. The box is scored by its centre; its size is taken to be the target's."
    )

    box_arguments: ClassVar[tuple[str, ...]] = ("bbox",)
    box_results: ClassVar[tuple[str, ...]] = ("box",)

    class Arguments(BaseModel):
        """The answer; only the box must be there for a report to be valid."""

        conclusion: str = Field(default="", description="what you found, one or two sentences")
        bbox: list[float] = Field(
            description="the box [x, y, w, h] in level-0 px: top-left corner, width, height",
            min_length=4,
            max_length=4,
        )
        confidence: float | None = Field(default=None, description="how sure you are, 0 to 1")

        @field_validator("bbox", mode="before")
        @classmethod
        def _written_as_text(cls, value: Any) -> Any:
            """Take a list that was written as a text."""
            if isinstance(value, str):
                try:
                    return json.loads(value)
                except (ValueError, RecursionError):
                    return value
            return value

        @field_validator("conclusion", mode="before")
        @classmethod
        def _any_text(cls, value: Any) -> str:
            return "" if value is None else str(value)

        @field_validator("confidence", mode="before")
        @classmethod
        def _number_or_none(cls, value: Any) -> float | None:
            """Take what is a number; a word is no confidence, and no reason to lose a box."""
            try:
                return None if isinstance(value, bool) else float(value)
            except (TypeError, ValueError, OverflowError):
                return None

    def call(self, environment: Environment, arguments: Arguments) -> ToolReply:
        """Accept the report."""
        box = environment.box(arguments.bbox)
        environment.report(box, arguments.conclusion, arguments.confidence)
        return ToolReply({"accepted": True, "box": box.as_list()})
