"""
Who asks, and what they may: tokens, of which only the SHA-256 is known here, and three roles.

A role may all that those before it may:

    read    read
    sql     … and ask in SQL of their own
    admin   … and change: silences, cordons
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from api.errors import Refused
from gnomon.config.model import ApiToken, Role
from gnomon.errors import UsageError

ROLES: Final[tuple[Role, ...]] = ("read", "sql", "admin")

_SHA256: Final = re.compile(rb"\s*([0-9a-fA-F]{64})(?:\s.*)?", re.DOTALL)
_MAX_FILE_BYTES: Final = 4096


class TokenError(UsageError):
    """A token of the configuration cannot be used."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    name: str
    """Of the token; empty where none is configured."""
    role: Role

    def may(self, role: Role) -> bool:
        """
        Return whether what needs a role is allowed.

        >>> Caller("ann", "sql").may("read"), Caller("ann", "sql").may("admin")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(role)


COOKIE: Final = "gnomon_token"
"""What a login of the dashboard sets: HttpOnly, and sent by our own pages alone (SameSite=Strict)."""
LOCAL: Final = Caller("", "sql")
"""Who asks where no token is configured: anybody who reaches the port, which then is on loopback."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token that is let in."""

    caller: Caller
    sha256: bytes


class Access:
    """The tokens in force."""

    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        self._tokens = tuple(tokens)

    @property
    def is_open(self) -> bool:
        """Whether no token is asked for."""
        return not self._tokens

    def caller(self, authorization: str | None) -> Caller | None:
        """
        Return who asks; None where a token is needed and none was sent.

        Args:
            authorization: the header, as it came.

        Raises:
            Refused: a header that is no token of ours.
        """
        if self.is_open:
            return LOCAL
        if authorization is None:
            return None
        scheme, _, secret = authorization.partition(" ")
        found = self.holder_of(secret.strip())
        if scheme.lower() != "bearer" or found is None:
            raise unauthorized("the token is not known here")
        return found

    def who(self, authorization: str | None, cookies: str) -> Caller | None:
        """
        Return who asks, by the header or else by the cookie of a login; None where neither says.

        Raises:
            Refused: a header that is no token of ours.
        """
        found = self.caller(authorization)
        return self.of_cookie(cookies) if found is None else found

    def of_cookie(self, cookies: str) -> Caller | None:
        """
        Return who asks by the cookie that a login has set; None without one, or where its token is not known any more.

        Args:
            cookies: the header, as it came.
        """
        for pair in cookies.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == COOKIE:
                return self.holder_of(value.strip('"'))
        return None

    def holder_of(self, secret: str) -> Caller | None:
        """Return whose token this is; None where it is nobody's."""
        digest = hashlib.sha256(secret.encode("latin-1", "replace")).digest()
        found: Caller | None = None
        for token in self._tokens:  # each is compared, whichever fits: the time tells nothing
            if hmac.compare_digest(token.sha256, digest):
                found = token.caller
        return found


def unauthorized(reason: str) -> Refused:
    """Return what somebody without a valid token is told."""
    return Refused(
        "unauthorized",
        f"{reason}; send `Authorization: Bearer TOKEN` with one of gnomon.api.tokens",
        headers={"WWW-Authenticate": 'Bearer realm="gnomon"'},
    )


def require(caller: Caller | None, role: Role) -> Caller:
    """
    Return the caller, who may do what needs a role.

    Raises:
        Refused: 401 without a token, 403 with one of a lesser role.
    """
    if caller is None:
        raise unauthorized("no token was sent")
    if not caller.may(role):
        who = f"token `{caller.name}`" if caller.name else "without gnomon.api.tokens everybody"
        raise Refused("forbidden", f"this needs the role {role}; {who} has the role {caller.role}")
    return caller


def read(tokens: Iterable[ApiToken]) -> Access:
    """
    Return the tokens of a configuration. Reads each `sha256File`.

    Raises:
        TokenError: a file cannot be read, holds no SHA-256, or two hold the same.
    """
    found: dict[bytes, Token] = {}
    for token in tokens:
        where = f"gnomon.api.tokens `{token.name}`: sha256File {token.sha256_file}"
        try:
            with Path(token.sha256_file).open("rb") as file:
                text = file.read(_MAX_FILE_BYTES)
        except OSError as error:
            raise TokenError(f"{where} cannot be read: {error.strerror}") from error
        match = _SHA256.fullmatch(text)
        if match is None:
            raise TokenError(
                f"{where} holds no SHA-256 in hex; write it with: printf %s TOKEN | sha256sum > {token.sha256_file}"
            )
        digest = bytes.fromhex(match[1].decode())
        if digest in found:
            raise TokenError(f"{where} is the same token as `{found[digest].caller.name}`")
        found[digest] = Token(Caller(token.name, token.role), digest)
    return Access(found.values())
