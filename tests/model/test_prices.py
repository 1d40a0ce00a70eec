"""Prices: what is listed has one, what is not has none, and no cost is a zero that nobody wrote."""

import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.errors import ConfigError
from pathnav.model.prices import Price, Prices, load_prices, shipped_prices
from pathnav.model.stub import STUB_MODEL

HEAD = "format: pathnav-prices-1\ndate: 2026-05-01\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_cost_is_tokens_times_the_price_of_a_million(tmp_path: Path) -> None:
    prices = load_prices(written(tmp_path, HEAD + "models:\n  m: {input: 2.5, output: 10}\n"))
    assert prices.usd("m", 1_000_000, 0) == 2.5
    assert prices.usd("m", 0, 1_000_000) == 10
    assert prices.usd("m", 1_000, 100) == 0.0035
    assert prices.date == datetime.date(2026, 5, 1)


def test_a_model_that_is_not_listed_has_no_price() -> None:
    assert shipped_prices().usd("qwen2.5-vl", 1, 1) is None
    assert shipped_prices().usd("GPT-4o", 1, 1) is None, "names are compared as they are"


def test_a_listed_zero_is_a_zero(tmp_path: Path) -> None:
    prices = load_prices(written(tmp_path, HEAD + "models: {mine: {input: 0, output: 0}}"))
    assert prices.usd("mine", 1000, 1000) == 0
    assert shipped_prices().usd(STUB_MODEL, 1000, 1000) == 0, "the stub is no model and costs nothing"


@given(
    price=st.floats(1e-3, 1e3), tokens=st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)).filter(lambda t: sum(t))
)
def test_a_cost_is_zero_only_where_the_price_is(price: float, tokens: tuple[int, int]) -> None:
    prices = Prices(date=datetime.date(2026, 5, 1), models={"m": Price(input=price, output=price)})
    usd = prices.usd("m", *tokens)
    assert usd is not None and usd > 0
    assert usd == pytest.approx(price * sum(tokens) / 1e6, rel=1e-3, abs=1e-12)


def test_the_shipped_prices_name_their_sources_and_their_day() -> None:
    prices = shipped_prices()
    assert 3 < len(prices.models) < 20
    assert all(price.source for price in prices.models.values())
    assert all(price.input > 0 for name, price in prices.models.items() if name != STUB_MODEL)


def test_a_file_of_the_users_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    prices = load_prices(written(tmp_path, HEAD + "models: {m: {input: 1, output: 1}}"))
    assert prices.usd("gpt-4o", 1, 1) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected a mapping whose first line is `format: pathnav-prices-1`"),
        ("format: pathnav-prices-2\n", "expected a mapping whose first line"),
        ("a: [", "is not YAML"),
        (HEAD, "models: missing"),
        ("format: pathnav-prices-1\nmodels: {}\n", "date: missing"),
        ("format: pathnav-prices-1\nmodels: {}\ndate: today\n", 'line 3: date: must be a valid date, got "today"'),
        (HEAD + "models: {m: {input: 1}}", "models.m.output: missing"),
        (HEAD + "models: {m: {input: -1, output: 1}}", "models.m.input: must be greater than or equal to 0, got -1"),
        (HEAD + "models: {m: {input: '1', output: 1}}", 'models.m.input: must be a number, got "1"'),
        (HEAD + "models: {m: {input: .nan, output: 1}}", "models.m.input: must be"),
        (HEAD + "models: {m: {input: true, output: 1}}", "models.m.input: must be a number, got true"),
        (HEAD + "models: {m: {inputs: 1, input: 1, output: 1}}", "models.m.inputs: unknown key (did you"),
        (HEAD + "models: {m: {input: 1, output: 1}, m: {input: 2, output: 2}}", "key 'm' stands twice"),
        (HEAD + "models: {4: {input: 1, output: 1}}", "models.4: must be a text, got 4"),
        (HEAD + "models: [m]", "models: must be a mapping of keys to values, got"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_sentence(text: str, expected: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_prices(path)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(str(path))
    assert expected in line


@pytest.mark.parametrize("name", ["none.yaml", ".", "a\0b"])
def test_a_file_that_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"price file .* cannot be read"):
        load_prices(tmp_path / name)
