"""Chat servers of many kinds, scripted: each sees with `support.eyes` and has the quirks that its `Kind` names."""

import io
import json
import re
from base64 import b64decode
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from PIL import Image

from support.chat_server import Answer, Request, calls, failure, say
from support.eyes import find_square, read_number

Corners = tuple[int, int, int, int]
_COUNTED = " ".join(str(number) for number in range(1, 101))


@dataclass(frozen=True)
class Kind:
    """A server and its model; the defaults are one that can do everything."""

    images: str = "seen"  # in user messages: seen, refused, guessed
    tool_images: str = "seen"  # seen, dropped, refused
    user_after_tool: str = "seen"  # seen, dropped, refused; with an assistant message between it is always taken
    most_images: int | None = None
    drops_further_images: bool = False  # instead of refusing them
    tools: str = "called"  # called, refused, ignored, in_text, broken
    parallel: bool = True
    heeds: tuple[str, ...] = ("named", "required")
    text_protocol: bool = True
    logprobs: int | str = 20  # alternatives, or "refused", or "none"
    fields: tuple[str, ...] = ("max_completion_tokens", "max_tokens")  # limits that it honours
    refuses: tuple[str, ...] = ()  # fields of the request that it answers 400 to
    usage: bool = True
    system: str = "obeyed"  # obeyed, ignored, refused
    thinks: str | None = None  # the tag
    structured: tuple[str, ...] = ("json_schema", "json_object")
    frame: str = "level0"  # level0: obeys; else what it counts in whatever it is told
    form: str = "xywh"
    squares: str = "seen"  # seen, garbage

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request."""
        body = request.body
        refused = self._refusal(body)
        if refused:
            return failure(400, refused)
        answer = self._spoken(request)
        if self.thinks and answer.content:
            answer = say(f"<{self.thinks}>Let me see: 12 - 5 + 9.</{self.thinks}>{answer.content}")
        limit = next((body[name] for name in self.fields if name in body), None)
        words = (answer.content or "").split(" ")
        if limit is not None and len(words) > limit:
            answer = say(" ".join(words[:limit]), finish_reason="length")
        return self._priced(answer, body, words)

    def _priced(self, answer: Answer, body: dict[str, Any], words: list[str]) -> Answer:
        if not self.usage:
            return replace(answer, usage=None)
        px = sum(image.width * image.height for image in self._visible(body))
        length = len(json.dumps([m for m in body["messages"] if isinstance(m["content"], str)]))
        out = len((answer.content or "").split(" ")) + 8 * len(answer.tool_calls)
        return replace(answer, usage={"prompt_tokens": length // 400 + 20 + px // 1000, "completion_tokens": out})

    def _refusal(self, body: dict[str, Any]) -> str | None:
        messages = body["messages"]
        images = [_images(message) for message in messages]
        for name in self.refuses:
            if name in body:
                return f"Unsupported parameter: {name}"
        if self.tools == "refused" and (body.get("tools") or any(m["role"] == "tool" for m in messages)):
            return "tools are not supported by this server"
        if self.logprobs == "refused" and body.get("logprobs"):
            return "this model gives no logprobs"
        if self.system == "refused" and messages[0]["role"] == "system":
            return "System role not supported"
        if self.images == "refused" and any(images):
            return "image input is not supported"
        if self.most_images is not None and not self.drops_further_images and sum(map(len, images)) > self.most_images:
            return f"At most {self.most_images} image(s) may be provided in one prompt"
        roles = [message["role"] for message in messages]
        if self.tool_images == "refused" and any(
            found and m["role"] == "tool" for found, m in zip(images, messages, strict=True)
        ):
            return "images are only allowed in user messages"
        if self.user_after_tool == "refused" and ("tool", "user") in pairwise(roles):
            return "Unexpected role 'user' after role 'tool'"
        return None

    def _visible(self, body: dict[str, Any]) -> list[Image.Image]:
        """Return the images that reach the model."""
        found: list[Image.Image] = []
        before = ""
        for message in body["messages"]:
            role = message["role"]
            lost = (role == "tool" and self.tool_images == "dropped") or (
                role == "user" and before == "tool" and self.user_after_tool == "dropped"
            )
            found += [] if lost else _images(message)
            before = role
        if self.images != "seen":
            return []
        return found[-self.most_images :] if self.most_images is not None else found

    def _spoken(self, request: Request) -> Answer:
        body, text = request.body, request.text
        if self.system == "obeyed" and "BANANA" in text:
            return say("BANANA")
        acted = any(message["role"] == "assistant" for message in body["messages"])
        if "Call the tool" in text and (not acted or "once that is done" in text):
            return self._called(body, text)
        if not acted and body.get("tool_choice"):
            return self._forced(body)
        if "as JSON" in text:
            return self._held(body)
        if "Count from 1 to 100" in text:
            return say(_COUNTED)
        if "sky blue" in text:
            return self._judged(body)
        if "square" in text:
            return say(self._pointed(body, text))
        if "picture" in text.lower() and (request.jpegs or "digits" in text):
            return say(self._read(body))
        return say("Hello!")

    def _called(self, body: dict[str, Any], text: str) -> Answer:
        if "The tools, with their arguments" in text:
            action = '{"tool": "take_picture", "arguments": {"place": "left"}}'
            return say(action if self.text_protocol or body.get("response_format") else "I cannot do that.")
        if self.tools == "in_text":
            return say('<tool_call>{"name": "take_picture", "arguments": {"place": "left"}}</tool_call>')
        if self.tools == "broken":
            return calls(("take_picture", '{"place": "left'))
        if self.tools == "ignored":
            return say("Hello!")
        places = ["left", "right"] if "twice" in text and self.parallel else ["left"]
        return calls(*(("take_picture", {"place": place}) for place in places))

    def _forced(self, body: dict[str, Any]) -> Answer:
        kind = "named" if isinstance(body["tool_choice"], dict) else str(body["tool_choice"])
        return calls(("tell_number", {"number": 7})) if kind in self.heeds else say("Hello!")

    def _held(self, body: dict[str, Any]) -> Answer:
        kind = (body.get("response_format") or {}).get("type")
        if kind not in self.structured:
            return say("Hello!")
        return say(
            '{"tool": "take_picture", "arguments": {"place": "x"}}' if kind == "json_schema" else '{"a": "hello"}'
        )

    def _judged(self, body: dict[str, Any]) -> Answer:
        if not isinstance(self.logprobs, int) or not body.get("logprobs"):
            return say("Yes")
        top = [{"token": f"t{n}", "logprob": -float(n + 1)} for n in range(min(self.logprobs, body["top_logprobs"]))]
        entry = {"token": "Yes", "logprob": -0.1, "top_logprobs": top}
        message = {"role": "assistant", "content": "Yes"}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": [entry]}}
        return Answer(content="Yes", body=json.dumps({"choices": [choice]}).encode())

    def _read(self, body: dict[str, Any]) -> str:
        if self.images == "guessed":
            return "The number is 12345."
        seen = [read_number(image) for image in self._visible(body)]
        return "I see: " + " ".join(seen) if seen else "I see no picture."

    def _pointed(self, body: dict[str, Any], text: str) -> str:
        (image,) = self._visible(body)
        colour = re.findall(r"the (red|green|blue|orange) square", text)[-1]
        corners = find_square(image, colour)
        assert corners
        if self.squares == "garbage":
            return "It is somewhere over there, 3 o'clock."
        shown = re.search(r"x=(\d+), y=(\d+), w=(\d+), h=(\d+)", text)
        if self.frame == "level0" and shown:
            x, y, width, _ = (int(number) for number in shown.groups())
            scale = width / image.width
            left, top, right, bottom = (round(number * scale) for number in corners)
            return f"[{x + left}, {y + top}, {right - left}, {bottom - top}]"
        return written(corners, image.size, "view_px" if self.frame == "level0" else self.frame, self.form)


def written(corners: Corners, extent_px: tuple[int, int], frame: str, form: str) -> str:
    """Return a box as a model with such coordinates writes it."""
    width, height = {"view_px": extent_px, "px_yx": extent_px, "unit": (1, 1), "percent": (100, 100)}.get(
        frame, (1000, 1000)
    )
    left, right = (x / extent_px[0] * width for x in corners[::2])
    top, bottom = (y / extent_px[1] * height for y in corners[1::2])
    across, down = (right, bottom) if form == "xyxy" else (right - left, bottom - top)
    numbers = [top, left, down, across] if frame.endswith("_yx") else [left, top, across, down]
    return json.dumps(
        {"bbox_2d": [round(number, 3 if frame == "unit" else 0) for number in numbers], "label": "1 square"}
    )


def _images(message: dict[str, Any]) -> list[Image.Image]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [Image.open(io.BytesIO(b64decode(url.partition(",")[2]))).convert("RGB") for url in urls]
