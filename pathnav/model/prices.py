"""What tokens cost: a dated list of prices, pathnav's own or the user's (`docs/how-to-plan.md`).

What is not listed has no price: a cost that nobody knows is None, and 0 only where a list says 0.
"""

import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from pathnav.errors import ConfigError
from pathnav.settings import compose_mapping, validated

PRICES_FORMAT: Literal["pathnav-prices-1"] = "pathnav-prices-1"
_PER = 1_000_000  # prices are written as providers write them: USD per million tokens
_DECIMALS = 12  # a token of the cheapest model costs 5e-8 USD: rounding takes away noise, never a cost

Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Price(BaseModel):
    """USD per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    input: Usd
    output: Usd
    source: str | None = None
    """Where the price was read."""


class Prices(BaseModel):
    """A list of prices. Read one with `load_prices`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal["pathnav-prices-1"] = PRICES_FORMAT
    date: datetime.date
    """When the prices were read."""
    models: dict[str, Price]
    """By the model's name, as requests give it."""

    def usd(self, model: str, tokens_in: int, tokens_out: int) -> float | None:
        """Return what tokens cost, None where the model has no price."""
        price = self.models.get(model)
        if price is None:
            return None
        return round((price.input * tokens_in + price.output * tokens_out) / _PER, _DECIMALS)


@cache
def shipped_prices() -> Prices:
    """Return the prices that come with pathnav."""
    return _parsed(files("pathnav.model").joinpath("prices.yaml").read_text(encoding="utf-8"), "prices.yaml of pathnav")


def load_prices(path: str | Path | None = None) -> Prices:
    """Return the prices of a user's file, which alone counts, or those that come with pathnav.

    Args:
        path: The file; None for pathnav's own.

    Raises:
        ConfigError: If the file cannot be read or is wrong, with one sentence a line.
    """
    if path is None:
        return shipped_prices()
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: bytes that are no text, or a name with a null byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"price file {path} cannot be read: {reason}") from error
    return _parsed(text, str(path))


def _parsed(text: str, source: str) -> Prices:
    return validated(Prices, compose_mapping(text, source, "price list", PRICES_FORMAT))
