"""Read the JSON-like object that stands at a place of a model's text, and nothing that does not stand there.

The library of this name fills in what a cut text leaves out; here every key, string and number was written in full or
the object is refused. Tolerated beside JSON: quotes of Python or typographic ones, `None`, `True` and `False`, trailing
commas, bare keys of ASCII letters, comments, line breaks in strings, and braces missing at the end.
"""

import math
import re
from typing import Any, Never

MOST_LEVELS = 64  # of braces and brackets within each other; no tool takes a tenth of it
_SHOWN = 16  # characters of the text that a complaint quotes

_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_BLANK = re.compile(r"\s+|(?://|#)[^\n]*")  # or a comment to the end of its line
_END = re.compile(r"\Z|```|</|<\|")  # of the text, of a fence, of a wrapper such as </tool_call> or <|im_end|>
_BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORD = re.compile(r"[A-Za-z_]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CODE = re.compile(r"u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|U00(?:10|0[0-9A-Fa-f])[0-9A-Fa-f]{4}")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SINGLE = ("'", "‘’‚‛")
_CLOSING = {opening: family for family in ('"', "“”„‟", *_SINGLE) for opening in family}
_STOPS = {family: re.compile(rf"[\\{family}]") for family in set(_CLOSING.values())}


class Unreadable(ValueError):
    """Raised when no object can be read; `args[0]` is one clause on why."""


class ObjectReader:
    """Reads one object of a text.

    Args:
        text: The whole text.
        at: Index of the object's opening brace; afterwards the index behind what was read, also where that failed.

    Attributes:
        open_braces: How many braces were still open at `at`: 0 after an object that was closed.
        keys: The keys of the object itself, not of objects within it, as far as they were read with their colon.
    """

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at
        self.open_braces = 0
        self.keys: list[str] = []
        self._level = 0

    def read(self) -> dict[str, Any]:
        """Return the object.

        Values are those that `json` reads, save that infinite numbers, lone surrogates and keys given twice are
        refused. Closing braces may be missing where the text, a fence or a wrapper ends behind a complete value; a
        number that the text's end follows at once is not complete.

        Raises:
            Unreadable: Whatever else it is.
        """
        self._descend()
        self.open_braces += 1
        found: dict[str, Any] = {}
        while self._next() != "}":
            self._add_pair(found)
            if not self._took(","):
                break
        if self._took("}"):
            self.open_braces -= 1
        elif not _END.match(self.text, self.at):
            self._refuse("expected ',' or '}'")
        self._level -= 1
        return found

    def _add_pair(self, found: dict[str, Any]) -> None:
        key = self._key()
        if key in found:
            self._refuse(f"the key {key[:_SHOWN]!r} is given twice")
        if self._level == 1:
            self.keys.append(key)
        found[key] = self._value()

    def _list(self) -> list[Any]:
        self._descend()
        found = []
        while self._next() != "]":
            found.append(self._value())
            if not self._took(","):
                break
        if not self._took("]"):
            self._refuse("expected ',' or ']'")
        self._level -= 1
        return found

    def _descend(self) -> None:
        self.at += 1
        self._level += 1
        if self._level > MOST_LEVELS:
            self._refuse(f"more than {MOST_LEVELS} levels of brackets")

    def _key(self) -> str:
        if self._next() in _CLOSING:
            key = self._string()
        elif bare := _BARE_KEY.match(self.text, self.at):
            self.at, key = bare.end(), bare.group()
        else:
            self._refuse("expected a key")
        if not self._took(":"):
            self._refuse("expected ':' behind a key")
        return key

    def _value(self) -> Any:
        first = self._next()
        if first == "{":
            return self.read()
        if first == "[":
            return self._list()
        if first in _CLOSING:
            return self._string()
        if number := _NUMBER.match(self.text, self.at):
            return self._number(number)
        word = _WORD.match(self.text, self.at)
        if not word or word.group() not in _WORDS:
            self._refuse("expected a value")
        self.at = word.end()
        return _WORDS[word.group()]

    def _number(self, match: re.Match[str]) -> int | float:
        if match.end() == len(self.text):
            self.at = match.end()
            self._refuse("a number may be cut off")
        try:
            number = float(match.group()) if match.group(1) or match.group(2) else int(match.group())
        except ValueError:  # Python reads no whole number of more than 4,300 digits
            self._refuse("a number has too many digits")
        if not math.isfinite(number):
            self._refuse("a number is too large")
        self.at = match.end()
        return number

    def _string(self) -> str:
        closing = _CLOSING[self.text[self.at]]
        self.at += 1
        parts: list[str] = []
        while True:
            stop = _STOPS[closing].search(self.text, self.at)
            if not stop:
                self.at = len(self.text)
                self._refuse("a string is cut off")
            parts.append(self.text[self.at : stop.start()])
            self.at = stop.start()
            if stop.group() == "\\":
                parts.append(self._escape())
                continue
            self.at += 1
            if closing not in _SINGLE or not self._is_behind_apostrophe():
                return self._joined("".join(parts))
            parts.append(stop.group())

    def _is_behind_apostrophe(self) -> bool:
        """Return whether the quote before `at` has letters on both sides; no quote closes a string in such a place."""
        return self.text[self.at - 2].isalnum() and self.text[self.at : self.at + 1].isalnum()

    def _escape(self) -> str:
        """Return what a backslash and what follows it mean: JSON's escapes, Python's, and Markdown's as in `a\\_b`."""
        self.at += 1
        if code := _CODE.match(self.text, self.at):
            self.at = code.end()
            return chr(int(code.group()[1:], 16))
        letter = self.text[self.at : self.at + 1]
        self.at += len(letter)
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        return "\\" + letter if letter.isalnum() or letter.isspace() else letter

    def _joined(self, text: str) -> str:
        """Return the text with surrogate pairs, as JSON escapes them, made into the characters they stand for."""
        if not _SURROGATE.search(text):
            return text
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            self._refuse("a string holds half a character")

    def _took(self, character: str) -> bool:
        """Skip blanks, and the character where it is the next one; return whether it was."""
        took = self._next() == character
        self.at += took
        return took

    def _next(self) -> str:
        """Skip blanks and comments; return the next character, empty at the end of the text."""
        while (character := self.text[self.at : self.at + 1]) and (character.isspace() or character in "/#"):
            if blank := _BLANK.match(self.text, self.at):
                self.at = blank.end()
            elif self.text.startswith("/*", self.at):
                closed = self.text.find("*/", self.at + 2)
                self.at = closed + 2 if closed >= 0 else len(self.text)
                if closed < 0:
                    self._refuse("a comment is cut off")
            else:
                break
        return character

    def _refuse(self, why: str) -> Never:
        came = self.text[self.at : self.at + _SHOWN]
        raise Unreadable(f"{why}, got {came!r}" if came else f"{why}, got the end of the text")
