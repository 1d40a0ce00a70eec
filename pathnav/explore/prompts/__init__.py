"""What a model is asked in Mode B, word for word; the texts are the files beside this one."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from pathnav.errors import ConfigError

PROMPT_VERSION = "mode-b-1"
USER_VERSION = "user"
DEFAULT_TARGET = "malignant tumour"
_PLACEHOLDER = re.compile(r"\{(target_text|magnification)\}")


@cache
def text(name: str) -> str:
    """Return one of the prompt texts."""
    return files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8").strip()


@dataclass(frozen=True, slots=True)
class Prompt:
    """The two texts that a model is sent beside a tile.

    Args:
        version: `PROMPT_VERSION`, or `user` for a user's own question.
        template: The question, with `{target_text}` and `{magnification}` where they belong.
        again: What follows an answer that was not understood.
    """

    version: str
    template: str
    again: str

    @classmethod
    def of(cls, path: str | Path | None = None) -> "Prompt":
        """Return the prompt of pathnav, or the one whose question is a user's file.

        Raises:
            ConfigError: If the file cannot be read as text, or holds none.
        """
        if path is None:
            return cls(PROMPT_VERSION, text("question"), text("again"))
        return cls(USER_VERSION, _user_text(Path(path)), text("again"))

    @property
    def sha256(self) -> str:
        """The hash over both texts, 64 hexadecimal digits."""
        return hashlib.sha256("\0".join([self.template, self.again]).encode()).hexdigest()

    @property
    def names_target(self) -> bool:
        """Whether the question has a place for what is looked for."""
        return "{target_text}" in self.template

    def question(self, target_text: str, magnification: float) -> str:
        """Return the question about one tile; braces that hold anything else stay as they are."""
        values = {"target_text": target_text, "magnification": f"{magnification:g}"}
        return _PLACEHOLDER.sub(lambda match: values[match.group(1)], self.template)


def _user_text(path: Path) -> str:
    """Return the text of a user's file without blanks around it."""
    try:
        found = path.read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise ConfigError(f"the prompt file {path} must be UTF-8 text: byte {error.start} is none") from error
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"the prompt file {path} cannot be read: {reason}") from error
    if not found:
        raise ConfigError(f"the prompt file {path} must hold a question, but is empty")
    return found
