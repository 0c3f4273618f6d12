"""
Who may ask: the Host and Origin of a request, and whose credentials it carries.

The port listens on loopback, and every page in the user's browser can reach loopback. A foreign Origin is refused, and
so is a Host that is not this machine's (a name that an attacker's DNS server points at 127.0.0.1).
"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from analytics.embedded.credentials import Credentials
from analytics.embedded.engine import Role
from analytics.embedded.errors import Code, Refusal

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
READER_USERS = frozenset({"", "default"})
"""Who gives no password, or names only ClickHouse's default user, is a reader."""


def host_of(header: str) -> str:
    """Return the host of a Host header or an origin, lower case, without port and brackets; empty when malformed."""
    try:
        name = urlsplit(header if "//" in header else "//" + header).hostname
    except ValueError:
        return ""
    return (name or "").rstrip(".")


def check_origin(host: str | None, origin: str | None, configured_host: str) -> None:
    """
    Refuse a request that another site's page may have sent.

    Raises:
        Refusal: ACCESS_DENIED.
    """
    allowed = LOOPBACK_NAMES | {configured_host.lower()}
    if host is None or host_of(host) not in allowed:
        raise Refusal.of(Code.ACCESS_DENIED, f"Host {host!r} is not an address of this ClickHouse")
    if origin is not None and host_of(origin) not in allowed:
        raise Refusal.of(Code.ACCESS_DENIED, f"Origin {origin!r} may not use this ClickHouse")


def role_of(headers: Mapping[str, str], url: Mapping[str, str], writer: Credentials) -> Role:
    """
    Return the role that the request's credentials give.

    Args:
        headers: of the request, case-insensitive.
        url: its URL parameters.
        writer: the only credentials that give more than reading.

    Raises:
        Refusal: AUTHENTICATION_FAILED, with the same text for an unknown user and a wrong password.
    """
    user, password = _credentials(headers, url)
    if user in READER_USERS and not password:
        return "reader"
    same_user = hmac.compare_digest(user.encode(), writer.user.encode())
    same_password = hmac.compare_digest(password.encode(), writer.password.encode())
    if same_user and same_password:
        return "writer"
    raise Refusal.of(
        Code.AUTHENTICATION_FAILED,
        f"{user}: Authentication failed: password is incorrect, or there is no user with such name. "
        "Reading the views of database gnomon needs no credentials.",
    )


def _credentials(headers: Mapping[str, str], url: Mapping[str, str]) -> tuple[str, str]:
    authorization = headers.get("Authorization", "")
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            decoded = base64.b64decode(rest.strip(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise Refusal.of(Code.AUTHENTICATION_FAILED, "Authentication failed: malformed Basic credentials") from None
        user, _, password = decoded.partition(":")
        return user, password
    if scheme:
        raise Refusal.of(Code.AUTHENTICATION_FAILED, f"Authentication failed: scheme {scheme!r} is not supported")
    if "X-ClickHouse-User" in headers or "X-ClickHouse-Key" in headers:
        return headers.get("X-ClickHouse-User", ""), headers.get("X-ClickHouse-Key", "")
    return url.get("user", ""), url.get("password", "")
