"""
URLs of upstreams: is it one, and how may it be shown.

An endpoint holds a secret in one of four places: user and password, a path segment (`/v2/KEY`), a query value
(`?apikey=KEY`), a header. What is shown keeps the shape and drops whatever could be the secret.
"""

import base64
import re
from urllib.parse import SplitResult, unquote, urlsplit

_ROUTE = re.compile(r"[A-Za-z]{0,4}|[vV]\d{1,2}|\d{1,7}")
"""Too short to be a key: `rpc`, `ext`, `v2`, the id of a chain."""
_ROUTES = frozenset(
    {
        "archive", "arbitrum", "avalanche", "ethereum", "gnosis", "holesky", "hoodi", "json-rpc", "jsonrpc", "mainnet",
        "ogrpc", "optimism", "polygon", "public", "sepolia", "testnet",
    }
)  # fmt: skip
"""Longer words that name a route. Anything else in a path may be a key."""
MASK = "***"


def check(url: str) -> str | None:
    """Return what is wrong with a URL, or None. The text is not repeated: it may hold a secret."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a URL: its port or its brackets are wrong"
    if any(character.isspace() or not character.isprintable() for character in url):
        return "is not a URL: it has spaces or control characters"
    if parts.scheme not in ("http", "https", "ws", "wss"):
        return "is not a URL of scheme http, https, ws or wss"
    if not parts.hostname:
        return "is not a URL: it names no host"
    if port == 0:
        return "names port 0"
    if parts.fragment:
        return "has a fragment (#…), which is never sent"
    return None


def display(url: str, secret: str = "") -> str:
    """
    Return the URL with user, password, query values and what may be a key in the path masked.

    Args:
        secret: masked in the path whatever it looks like, where it is known.

    >>> display("https://me:pw@eth.example.com/v2/aAbBcCdDeEfF00112233?apikey=x")
    'https://***@eth.example.com/v2/***?apikey=***'
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    netloc = ("***@" if parts.username is not None or parts.password is not None else "") + host
    if parts.port is not None:
        netloc += f":{parts.port}"
    path = "/".join(
        MASK if secret and segment == secret else _mask_segment(segment) for segment in parts.path.split("/")
    )
    query = "&".join(_mask_pair(pair) for pair in parts.query.split("&")) if parts.query else ""
    return SplitResult(parts.scheme, netloc, path, query, "").geturl()


def _mask_segment(segment: str) -> str:
    return segment if segment.lower() in _ROUTES or _ROUTE.fullmatch(segment) else MASK


def _mask_pair(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    if not equals:
        return MASK
    return pair if name in ("network", "chain", "chainId") else f"{name}={MASK}"


def host_of(url: str) -> str:
    """Return `host` or `host:port`, for naming an upstream that has no id."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port is not None else str(parts.hostname)


def without_user(url: str) -> tuple[str, dict[str, str]]:
    """Return the URL without `user:password@`, and the header that carries them instead (empty without any)."""
    parts = urlsplit(url)
    if parts.username is None and parts.password is None:
        return url, {}
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return bare, {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode("ascii")}
