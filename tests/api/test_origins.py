"""Pages of others are kept out, ours and listed ones let in."""

import pytest

from api import origins
from api.errors import Refused
from gnomon.config.model import Cors

CORS = Cors(
    allowed_origins=("https://a.example", "https://*.b.example"),
    allowed_methods=("GET", "PATCH"),
    allowed_headers=("authorization",),
    max_age_seconds=60,
)


@pytest.mark.parametrize(
    ("host", "bound_to", "is_ours"),
    [
        ("127.0.0.1:8080", "127.0.0.1", True),
        ("localhost:8080", "127.0.0.1", True),
        ("LOCALHOST", "127.0.0.1", True),
        ("[::1]:8080", "127.0.0.1", True),
        ("127.0.0.2:1", "127.0.0.2", True),
        ("127.0.0.2:1", "127.0.0.1", False),
        ("evil.example", "127.0.0.1", False),
        ("evil.example:8080", "localhost", False),
        ("127.0.0.1.evil.example", "127.0.0.1", False),
        ("", "127.0.0.1", False),
        ("gnomon.internal", "0.0.0.0", True),
        ("gnomon.internal", "10.0.0.5", True),
    ],
)
def test_a_host_is_ours_or_not(host: str, bound_to: str, is_ours: bool) -> None:
    """On loopback only loopback's names are, beyond it tokens guard."""
    if is_ours:
        origins.check_host(host, bound_to)
    else:
        with pytest.raises(Refused, match="not served here"):
            origins.check_host(host, bound_to)


@pytest.mark.parametrize(
    ("origin", "is_allowed"),
    [
        ("", True),
        ("http://127.0.0.1:8080", True),
        ("http://127.0.0.1:8081", False),
        ("https://a.example", True),
        ("http://a.example", False),
        ("https://a.example.evil", False),
        ("https://x.b.example", True),
        ("https://x.y.b.example", True),
        ("https://b.example", False),
        ("https://evil/.b.example", False),
        ("null", False),
    ],
)
def test_an_origin_is_allowed_or_not(origin: str, is_allowed: bool) -> None:
    """Its own page always, others as listed."""
    assert origins.is_allowed(origin, "127.0.0.1:8080", CORS) is is_allowed
    if not is_allowed:
        with pytest.raises(Refused, match="is not allowed"):
            origins.check_origin(origin, "127.0.0.1:8080", CORS)


def test_without_cors_only_our_own_page_may_ask() -> None:
    """And nothing is said to pages."""
    assert origins.is_allowed("http://h", "h", None)
    assert not origins.is_allowed("https://a.example", "h", None)
    assert origins.headers("https://a.example", None) == {}


def test_a_star_lets_every_page_in() -> None:
    """As configured."""
    assert origins.is_allowed("https://z.example", "h", Cors(allowed_origins=("*",)))


def test_an_answer_names_the_origin_and_varies_by_it() -> None:
    """So that no cache gives one page's answer to another."""
    said = origins.headers("https://a.example", CORS)

    assert said["Access-Control-Allow-Origin"] == "https://a.example"
    assert said["Vary"] == "Origin"
    assert "X-Request-Id" in said["Access-Control-Expose-Headers"]
    assert "Access-Control-Allow-Credentials" not in said
    assert origins.headers("", CORS) == {"Vary": "Origin"}


def test_a_preflight_names_methods_headers_and_how_long_it_holds() -> None:
    """Those of the routes and those of the configuration."""
    said = origins.preflight({"origin": "https://a.example"}, CORS)

    assert said["Access-Control-Allow-Methods"] == "GET, POST, PUT, DELETE, PATCH"
    assert said["Access-Control-Allow-Headers"] == "authorization, last-event-id"
    assert said["Access-Control-Max-Age"] == "60"
