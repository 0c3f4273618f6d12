"""Receivers of alerts: what is read, and what is told about a slip, without its secrets."""

from pathlib import Path

import pytest

from gnomon.config.errors import ConfigError
from gnomon.config.receivers import Receiver, parse
from tests.config.test_load import ONE, with_upstreams


def read(*given: object) -> tuple[list[Receiver], list[tuple[int, str, str]]]:
    """Return receivers and what was reported."""
    told: list[tuple[int, str, str]] = []
    return parse(given, lambda *what: told.append(what), Path("/etc/gnomon")), told


def test_each_kind_is_read() -> None:
    """Files are looked up beside the configuration."""
    receivers, told = read(
        {"name": "ops", "webhook": {"url": "http://127.0.0.1:1/hook"}},
        {"name": "x", "slack": {"urlFile": "slack"}},
        {"name": "y", "pagerduty": {"routingKeyFile": "/run/key"}},
        {"name": "z", "alertmanager": {"url": "http://127.0.0.1:9093", "tokenFile": "token"}},
    )

    assert told == []
    assert receivers == [
        Receiver("ops", "webhook", "http://127.0.0.1:1/hook"),
        Receiver("x", "slack", url_file="/etc/gnomon/slack"),
        Receiver("y", "pagerduty", routing_key_file="/run/key"),
        Receiver("z", "alertmanager", "http://127.0.0.1:9093", token_file="/etc/gnomon/token"),
    ]
    assert "hook" not in repr(receivers[0]).replace("webhook", "")


@pytest.mark.parametrize(
    ("given", "member", "message"),
    [
        ({"webhook": {"url": "http://h"}}, "name", "is missing"),
        ({"name": "a"}, "", "one of webhook, slack, pagerduty, alertmanager is needed"),
        ({"name": "a", "slack": {"urlFile": "f"}, "webhook": {"url": "http://h"}}, "", "one of webhook"),
        ({"name": "a", "email": {"to": "me"}}, "email", "unknown kind"),
        ({"name": "a", "webhook": {"url": "ftp://h"}}, "webhook.url", "is not a URL of scheme"),
        ({"name": "a", "webhook": {"url": "wss://h"}}, "webhook.url", "is no http(s) URL"),
        ({"name": "a", "webhook": {"url": "http://h", "urlFile": "f"}}, "webhook", "url or urlFile is needed"),
        ({"name": "a", "pagerduty": {"routingKey": "S3CRET"}}, "pagerduty.routingKey", "unknown key"),
        ({"name": "a", "pagerduty": {}}, "pagerduty", "routingKeyFile is needed"),
        ({"name": "a", "slack": "x"}, "slack", "expected a mapping"),
        ("ops", "", "expected a mapping"),
    ],
)
def test_a_slip_is_named(given: object, member: str, message: str) -> None:
    """With its place, never its value: an address may hold a secret."""
    _, told = read(given)

    assert any(place == member and text.startswith(message) for _, place, text in told), told
    assert "S3CRET" not in str(told)


def test_two_of_a_name_are_refused() -> None:
    """Rules name receivers, so a name means one."""
    _, told = read({"name": "a", "slack": {"urlFile": "f"}}, {"name": "a", "webhook": {"url": "http://h"}})

    assert told == [(1, "name", "two receivers are called `a`")]


def test_the_configuration_names_the_place() -> None:
    """As for every other slip."""
    with pytest.raises(ConfigError, match=r"gnomon\.alerts\.receivers\[0\]\.slack"):
        with_upstreams(ONE, more="gnomon: {alerts: {receivers: [{name: a, slack: {}}]}}")
