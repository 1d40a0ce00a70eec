"""Endpoints as users type them, and environments in which pathnav does not start."""

import pytest

from pathnav.errors import ConfigError
from pathnav.model import ChatClient, ChatSettings, refuse_tracing


@pytest.mark.parametrize(
    "typed",
    [
        "http://host:8000",
        "http://host:8000/",
        "http://host:8000/v1",
        "http://host:8000/v1/",
        " http://host:8000/v1/chat/completions ",
        "http://host:8000/v1/chat/completions/",
    ],
)
def test_obvious_forms_of_a_base_url_mean_the_same_endpoint(typed: str) -> None:
    assert ChatSettings(base_url=typed, model="m").endpoint == "http://host:8000/v1"


def test_a_path_of_the_users_own_is_kept() -> None:
    assert ChatSettings(base_url="https://openrouter.ai/api/v1/", model="m").endpoint == "https://openrouter.ai/api/v1"
    assert ChatSettings(base_url="http://[::1]:8000/proxy", model="m").endpoint == "http://[::1]:8000/proxy"


@pytest.mark.parametrize(
    "typed", ["localhost:8000", "", "ftp://host", "http://", "http://host:port", "http://host:99999", "http://[::1"]
)
def test_a_base_url_without_scheme_host_or_legal_port_is_a_config_error(typed: str) -> None:
    with pytest.raises(ConfigError, match="base URL must"):
        ChatSettings(base_url=typed, model="m")


def test_credentials_in_a_base_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        ChatSettings(base_url="http://me:sesame@host/v1", model="m")
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [("model", " "), ("temperature", -1), ("top_p", 0), ("max_tokens", 0), ("timeout_s", 0), ("image_detail", "huge")],
)
def test_a_setting_out_of_range_is_a_config_error_that_names_it(field: str, value: object) -> None:
    arguments = {"base_url": "http://host", "model": "m", field: value}
    with pytest.raises(ConfigError, match=field):
        ChatSettings(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(("url", "hint"), [("ftp://x", ""), ("host:8000/v1", "; try http://host:8000/v1")])
def test_http_is_offered_only_where_no_other_protocol_was_named(url: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ChatSettings(base_url=url, model="m")
    assert str(caught.value) == f"the base URL must begin with http:// or https://, got {url!r}{hint}"


def test_settings_do_not_show_the_key() -> None:
    assert "sesame" not in repr(ChatSettings(base_url="http://host", model="m", api_key="sesame"))


@pytest.mark.parametrize(
    ("host", "expected"),
    [("localhost", True), ("127.0.0.2", True), ("[::1]", True), ("10.0.0.1", False), ("localhost.org", False)],
)
def test_loopback_is_told_from_the_network(host: str, expected: bool) -> None:
    assert ChatSettings(base_url=f"http://{host}:1", model="m").is_loopback is expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LANGSMITH_TRACING", "true"),
        ("LANGCHAIN_TRACING_V2", "1"),
        ("LANGSMITH_TRACING_V2", "True"),
        ("LANGSMITH_GATEWAY", "https://gateway.example"),
        ("LANGCHAIN_HANDLER", "langchain"),
    ],
)
def test_tracing_and_gateway_variables_stop_the_start(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=name):
        refuse_tracing({name: value})
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=name):
        ChatClient(ChatSettings(base_url="http://host", model="m"))


@pytest.mark.parametrize("value", ["", "false", "0", "no", "FALSE"])
def test_tracing_variables_that_say_off_are_no_hindrance(value: str) -> None:
    refuse_tracing({"LANGSMITH_TRACING": value, "LANGSMITH_GATEWAY": value, "LANGSMITH_API_KEY": "set"})


@pytest.mark.parametrize(
    ("name", "url"), [("ALL_PROXY", "socks5://127.0.0.1:9"), ("OPENAI_PROXY", "http://127.0.0.1:9")]
)
def test_a_proxy_of_the_environment_does_not_stand_before_loopback(
    name: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, url)
    ChatClient(ChatSettings(base_url="http://127.0.0.1:9", model="any")).close()


def test_a_proxy_that_cannot_be_used_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "nonsense://127.0.0.1:9")
    with pytest.raises(ConfigError, match="the proxy that the environment names"):
        ChatClient(ChatSettings(base_url="http://example.org", model="any"))
