"""URLs of upstreams are checked, and shown without what could be a secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.config import endpoints, vendors


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("http://127.0.0.1:8545/ext/bc/C/rpc", "http://127.0.0.1:8545/ext/bc/C/rpc"),
        ("http://[::1]:8545/", "http://[::1]:8545/"),
        ("https://user@h.example/x", "https://***@h.example/x"),
        ("https://user:pw@h.example/x", "https://***@h.example/x"),
        ("https://h.example/v2/aAbBcCdDeEfF00112233", "https://h.example/v2/***"),
        ("https://h.example/v2/lowercaselettersonly", "https://h.example/v2/***"),
        ("https://h.example/v2/ab12cd34", "https://h.example/v2/***"),
        ("https://h.example/v2/letters", "https://h.example/v2/***"),
        ("https://h.example/k3y", "https://h.example/***"),
        ("https://h.example/Mainnet/31337/archive", "https://h.example/Mainnet/31337/archive"),
        ("https://h.example/?apikey=x&network=ethereum", "https://h.example/?apikey=***&network=ethereum"),
        ("https://h.example/?x", "https://h.example/?***"),
        ("wss://h.example/ws/v3/0123456789abcdef", "wss://h.example/ws/v3/***"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    """User, password, query values and path segments that could be keys are masked; the rest stays readable."""
    assert endpoints.display(url) == shown


@given(st.from_regex(r"[A-Za-z0-9_-]{12,64}", fullmatch=True))
def test_no_long_key_is_shown(key: str) -> None:
    """A key of twelve characters or more never appears, wherever it stands."""
    url = f"https://{key}:{key}@h.example/v2/{key}/x?apikey={key}"

    assert key not in endpoints.display(url)


def test_a_short_key_of_a_vendor_is_not_shown() -> None:
    """Where the key is known it is masked whatever its length."""
    assert endpoints.display("https://eth-mainnet.g.alchemy.com/v2/k", "k").endswith("/v2/***")


def test_user_and_password_become_a_header() -> None:
    """Percent signs are decoded before they are sent, as RFC 3986 has them."""
    bare, headers = endpoints.without_user("https://a:p%40w@h.example:8443/x")

    assert bare == "https://h.example:8443/x"
    assert headers == {"Authorization": "Basic YTpwQHc="}
    assert endpoints.without_user(bare) == (bare, {})


@pytest.mark.parametrize(
    ("chain", "vendor"), [(c, v.name) for v in vendors.VENDORS.values() if v.endpoint for c in v.chains()]
)
def test_a_vendors_own_url_tells_vendor_and_chain(chain: int, vendor: str) -> None:
    """What a scheme is expanded to is a valid URL, and is known again as that vendor and chain."""
    known = vendors.VENDORS[vendor]
    assert known.endpoint is not None
    url = known.endpoint(known.chains()[chain], "key-1").url

    assert endpoints.check(url) is None
    assert vendors.by_host(url) is known
    assert vendors.chain_by_url(url) == chain


def test_keys_are_escaped_in_urls() -> None:
    """A key with characters of its own cannot add a path or a query."""
    alchemy = vendors.VENDORS["alchemy"]
    assert alchemy.endpoint is not None

    assert alchemy.endpoint("eth-mainnet", "a/b?c#d").url == "https://eth-mainnet.g.alchemy.com/v2/a%2Fb%3Fc%23d"
