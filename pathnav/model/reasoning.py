"""What a model says to itself before it answers, told apart from the answer."""

import re
from collections.abc import Sequence


def split_reasoning(text: str, tags: Sequence[str]) -> tuple[str, str | None]:
    """Return the answer without the model's reasoning, and the reasoning; None where there is none.

    Templates may put the opening tag into the prompt: a closing tag alone ends a reasoning that began with the text. An
    opening tag alone began one that the token limit cut off: there is no answer then.

    Args:
        text: The whole text.
        tags: Names of tags, such as `think` for `<think>...</think>`.
    """
    parts: list[str] = []
    for tag in tags:
        start, end = re.escape(f"<{tag}>"), re.escape(f"</{tag}>")
        if text.find(f"</{tag}>") >= 0 and not 0 <= text.find(f"<{tag}>") < text.find(f"</{tag}>"):
            before, _, text = text.partition(f"</{tag}>")
            parts.append(before)
        parts += re.findall(f"{start}(.*?)(?:{end}|$)", text, re.DOTALL)
        text = re.sub(f"{start}.*?(?:{end}|$)", "", text, flags=re.DOTALL)
    said = "\n\n".join(part.strip() for part in parts if part.strip())
    return (text.strip(), said or None) if parts else (text, None)


def answer_start(tokens: Sequence[str], tags: Sequence[str]) -> int:
    """Return the index of the first token behind the last closing tag; 0 where none closes.

    Args:
        tokens: The answer's tokens as sent; a tag may be spread over several.
        tags: Names of tags.
    """
    joined = "".join(tokens)
    end = max((at + len(f"</{tag}>") for tag in tags if (at := joined.rfind(f"</{tag}>")) >= 0), default=0)
    index, seen = 0, 0
    while seen < end:
        seen += len(tokens[index])
        index += 1
    return index
