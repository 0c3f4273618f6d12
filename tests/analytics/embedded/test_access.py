"""Who may ask: Host, Origin, credentials."""

import base64

import pytest
from multidict import CIMultiDict

from analytics.embedded.access import check_origin, host_of, role_of
from analytics.embedded.credentials import Credentials
from analytics.embedded.errors import Refusal

WRITER = Credentials("gnomon", "s3cret:x")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("127.0.0.1:8123", "127.0.0.1"),
        ("LOCALHOST", "localhost"),
        ("[::1]:8123", "::1"),
        ("localhost.:1", "localhost"),
        ("http://evil.example:80", "evil.example"),
        ("null", "null"),
        ("", ""),
        ("[::1", ""),
    ],
)
def test_the_host_is_read_without_its_port(header: str, expected: str) -> None:
    """Case, port, brackets and the root's dot do not matter."""
    assert expected == host_of(header)


@pytest.mark.parametrize("host", ["127.0.0.1:8123", "localhost:1", "[::1]:8123", "ch.internal:8123"])
@pytest.mark.parametrize("origin", [None, "http://localhost:3000", "http://127.0.0.1"])
def test_own_names_are_let_in(host: str, origin: str | None) -> None:
    """Loopback's names and the configured one."""
    check_origin(host, origin, "ch.internal")


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        (None, None),
        ("evil.example:8123", None),
        ("127.0.0.1.evil.example", None),
        ("evil@127.0.0.1.example", None),
        ("127.0.0.1", "http://evil.example"),
        ("127.0.0.1", "null"),
        ("127.0.0.1", "https://localhost.evil.example"),
    ],
)
def test_foreign_names_are_refused(host: str | None, origin: str | None) -> None:
    """A rebound name, or a page of another site."""
    with pytest.raises(Refusal) as caught:
        check_origin(host, origin, "127.0.0.1")

    assert caught.value.name == "ACCESS_DENIED"


def basic(text: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}


@pytest.mark.parametrize(
    ("headers", "url", "expected"),
    [
        ({}, {}, "reader"),
        ({}, {"user": "default"}, "reader"),
        (basic("default:"), {}, "reader"),
        (basic("gnomon:s3cret:x"), {}, "writer"),
        ({"X-ClickHouse-User": "gnomon", "X-ClickHouse-Key": "s3cret:x"}, {}, "writer"),
        ({"x-clickhouse-user": "gnomon", "x-clickhouse-key": "s3cret:x"}, {}, "writer"),
        ({}, {"user": "gnomon", "password": "s3cret:x"}, "writer"),
    ],
)
def test_credentials_give_a_role(headers: dict[str, str], url: dict[str, str], expected: str) -> None:
    """Three ways to say them, as with ClickHouse."""
    assert expected == role_of(CIMultiDict(headers), url, WRITER)


@pytest.mark.parametrize(
    ("headers", "url"),
    [
        ({}, {"user": "gnomon"}),
        ({}, {"user": "gnomon", "password": "wrong"}),
        ({}, {"user": "default", "password": "s3cret:x"}),
        ({}, {"password": "s3cret:x"}),
        ({}, {"user": "other"}),
        (basic("gnomon"), {}),
        ({"Authorization": "Basic ???"}, {}),
        ({"Authorization": "Bearer x"}, {}),
        (basic("gnomon:wrong"), {"user": "gnomon", "password": "s3cret:x"}),
    ],
)
def test_wrong_credentials_are_no_reader(headers: dict[str, str], url: dict[str, str]) -> None:
    """Who tries to be the writer and fails is told so."""
    with pytest.raises(Refusal) as caught:
        role_of(CIMultiDict(headers), url, WRITER)

    assert (caught.value.name, caught.value.http_status) == ("AUTHENTICATION_FAILED", 403)
    assert "s3cret" not in caught.value.message
