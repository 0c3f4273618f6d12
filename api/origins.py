"""
Which names this port is asked by (Host), and which web pages may ask (Origin, CORS).

A page in somebody's browser reaches loopback too. By a name of its own (DNS rebinding) it is refused; from its own
origin it is refused unless `gnomon.api.cors` lists it, for simple requests too, which no preflight precedes.
"""

import re
from collections.abc import Mapping
from typing import Final

from api.errors import Refused
from gnomon.config.model import Cors
from gnomon.config.services import is_loopback

METHODS: Final = ("GET", "POST", "PUT", "DELETE")
_EXPOSED: Final = (
    "X-Request-Id", "Retry-After", "Location", "X-Gnomon-Seconds", "X-Gnomon-Read-Rows", "X-Gnomon-Read-Bytes",
)  # fmt: skip
"""What answers say in headers, for pages of an allowed origin too."""
_NAMES: Final = frozenset(("localhost", "127.0.0.1", "::1"))
_LABELS: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")


def check_host(host: str, bound_to: str) -> None:
    """
    Refuse a Host that is not ours. Beyond loopback there are tokens, which no browser sends by itself: any will do.

    Args:
        host: the header.
        bound_to: the address of the listener.

    Raises:
        Refused: 403.
    """
    if not is_loopback(bound_to):
        return
    name = re.sub(r":\d+\Z", "", host).strip("[]").lower()
    if name not in _NAMES and name != bound_to.strip("[]").lower():
        raise Refused("foreign-host", f"host {host!r} is not served here; use {bound_to}")


def is_allowed(origin: str, host: str, cors: Cors | None) -> bool:
    """
    Return whether a page of an origin may ask.

    Args:
        origin: the header; empty = no page.
        host: the header; a page of this very port has it in its origin.
    """
    if not origin or (host and origin.partition("://")[2] == host):
        return True
    allowed = () if cors is None else cors.allowed_origins
    return origin in allowed or "*" in allowed or any(_is_below(origin, entry) for entry in allowed if "://*." in entry)


def check_origin(origin: str, host: str, cors: Cors | None) -> None:
    """
    Raises:
        Refused: 403.
    """
    if not is_allowed(origin, host, cors):
        raise Refused("foreign-origin", f"origin {origin!r} is not allowed; list it in gnomon.api.cors.allowedOrigins")


def _is_below(origin: str, entry: str) -> bool:
    scheme, _, rest = entry.lower().partition("*")
    found = origin.lower()
    name = found[len(scheme) : len(found) - len(rest)]
    return found.startswith(scheme) and found.endswith(rest) and _LABELS.fullmatch(name) is not None


def headers(origin: str, cors: Cors | None) -> dict[str, str]:
    """Return what an answer to an allowed page says."""
    if cors is None:
        return {}
    said = {"Vary": "Origin"}
    if not origin:
        return said
    said["Access-Control-Allow-Origin"] = origin
    if cors.allow_credentials:
        said["Access-Control-Allow-Credentials"] = "true"
    exposed = dict.fromkeys((*_EXPOSED, *cors.exposed_headers))
    return {**said, "Access-Control-Expose-Headers": ", ".join(exposed)}


def preflight(asked: Mapping[str, str], cors: Cors) -> dict[str, str]:
    """
    Return the headers that answer a preflight of an allowed page.

    Args:
        asked: the request's headers, by lower-case name.
    """
    return {
        **headers(asked.get("origin", ""), cors),
        "Access-Control-Allow-Methods": ", ".join(dict.fromkeys((*METHODS, *cors.allowed_methods))),
        "Access-Control-Allow-Headers": ", ".join(dict.fromkeys((*cors.allowed_headers, "last-event-id"))),
        "Access-Control-Max-Age": str(cors.max_age_seconds),
    }
