"""Pixels leave for public hosts only where the user has named them."""

import pytest

from pathnav.errors import ConfigError
from pathnav.model import ChatClient, ChatSettings
from pathnav.model.hosts import addresses, refuse_public


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "10.1.2.3", "192.168.0.9", "172.16.5.5", "fd00::1", "::ffff:10.0.0.1"],
)
def test_this_machine_and_private_networks_need_no_word(host: str) -> None:
    refuse_public(host, ())


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.1.1",
        "100.64.0.1",
        "100.127.255.254",
        "fe80::1",
        "::ffff:169.254.169.254",
        "240.0.0.1",
    ],
)
def test_what_carriers_and_clouds_answer_from_is_refused_until_it_is_named(host: str) -> None:
    with pytest.raises(ConfigError, match="neither on this machine nor in a private network") as caught:
        refuse_public(host, ())
    assert f"--allow-host {host}" in str(caught.value.remedy)
    refuse_public(host, (host,))


@pytest.mark.parametrize("host", ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8", "172.32.0.1"])
def test_a_public_address_is_refused_until_it_is_named(host: str) -> None:
    with pytest.raises(ConfigError, match=f"{host} is on a public network"):
        refuse_public(host, ("api.openai.com",))
    refuse_public(host, (host.upper(),))


def test_a_name_is_as_public_as_the_most_public_of_its_addresses() -> None:
    refuse_public("gpu.hospital", (), lambda host: ["10.0.0.4", "fd00::4"])
    with pytest.raises(ConfigError, match="public network"):
        refuse_public("gpu.hospital", (), lambda host: ["10.0.0.4", "8.8.8.8"])


def test_a_name_that_does_not_resolve_is_left_to_the_connection() -> None:
    assert addresses("no-such-host.invalid") == []
    refuse_public("no-such-host.invalid", ())


def test_no_client_is_made_for_a_public_host_that_was_not_named() -> None:
    with pytest.raises(ConfigError, match="public network"):
        ChatClient(ChatSettings("https://8.8.8.8/v1", "m"))
    ChatClient(ChatSettings("https://8.8.8.8/v1", "m", allow_hosts=("8.8.8.8",))).close()
