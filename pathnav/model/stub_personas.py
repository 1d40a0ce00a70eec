"""All personas of the stub by name; what each one does is told in `docs/personas.md`."""

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from pathnav.errors import ConfigError
from pathnav.model.stub_persona import Persona
from pathnav.model.stub_persona_failures import Flaky, HtmlError, Slow
from pathnav.model.stub_persona_habits import Garrulous, Overbudget, TextOnly, TruncatedJson
from pathnav.model.stub_persona_rules import MistralOrder, NoLogprobs, NoUsage, SilentDrop, Strict

PLAIN = Persona.name

_CLASSES: tuple[type[Persona], ...] = (
    *(Persona, Strict, SilentDrop, MistralOrder, NoLogprobs, NoUsage),
    *(Flaky, Slow, HtmlError),
    *(TruncatedJson, TextOnly, Garrulous, Overbudget),
)
PERSONAS: Mapping[str, type[Persona]] = MappingProxyType({persona.name: persona for persona in _CLASSES})
"""Servers' rules first, then failures, then models' habits."""


def persona_named(name: str, seed: int = 0) -> Persona:
    """Return a persona with the defaults of its kind.

    Raises:
        ConfigError: If there is none of that name.
    """
    if name not in PERSONAS:
        near = difflib.get_close_matches(name, PERSONAS, n=1, cutoff=0.7)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ConfigError(f"the stub has no persona {name!r}{hint}; there are {', '.join(PERSONAS)}")
    return PERSONAS[name](seed)
