"""Tokens are known by their hash, roles are in order, and what cannot be used is named at start."""

import hashlib
from pathlib import Path

import pytest

from api import access
from api.access import LOCAL, ROLES, Access, Caller, Token, TokenError
from api.errors import Refused
from gnomon.config.model import ApiToken, Role

ANN = Token(Caller("ann", "admin"), hashlib.sha256(b"s3cret").digest())
BOB = Token(Caller("bob", "read"), hashlib.sha256(b"other").digest())


@pytest.mark.parametrize("mine", ROLES)
@pytest.mark.parametrize("needed", ROLES)
def test_a_role_may_all_that_those_before_it_may(mine: Role, needed: Role) -> None:
    """read < sql < admin."""
    order = ["read", "sql", "admin"]

    assert Caller("x", mine).may(needed) is (order.index(mine) >= order.index(needed))


def test_without_tokens_everybody_reads_and_asks_in_sql() -> None:
    """And may change nothing."""
    caller = Access().caller(None)

    assert caller == LOCAL
    assert caller is not None
    assert (caller.may("sql"), caller.may("admin")) == (True, False)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("Bearer s3cret", "ann"),
        ("bearer s3cret ", "ann"),
        ("Bearer other", "bob"),
    ],
)
def test_a_token_is_known(header: str | None, expected: str | None) -> None:
    """By its hash; the scheme in any case, as HTTP has it."""
    caller = Access([ANN, BOB]).caller(header)

    assert (caller.name if caller else None) == expected


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic s3cret", "s3cret", "Bearer sécret"])
def test_anything_else_is_refused(header: str) -> None:
    """With the challenge that the standard asks for, and not a word of what was sent."""
    with pytest.raises(Refused) as refused:
        Access([ANN, BOB]).caller(header)

    assert refused.value.problem == "unauthorized"
    assert refused.value.headers == {"WWW-Authenticate": 'Bearer realm="gnomon"'}
    assert "s3cret" not in str(refused.value)


def test_what_needs_a_role_says_which() -> None:
    """401 without a token, 403 with one of a lesser role."""
    assert access.require(ANN.caller, "admin") is ANN.caller
    with pytest.raises(Refused, match="no token was sent"):
        access.require(None, "read")
    with pytest.raises(Refused, match="needs the role sql; token `bob` has the role read"):
        access.require(BOB.caller, "sql")


def token(folder: Path, name: str, content: bytes, role: Role = "read") -> ApiToken:
    file = folder / name
    file.write_bytes(content)
    return ApiToken(name=name, role=role, sha256_file=str(file))


def test_a_file_holds_a_hash_as_sha256sum_writes_it(tmp_path: Path) -> None:
    """Case, spaces and the name behind it do not matter."""
    digest = hashlib.sha256(b"s3cret").hexdigest()
    tokens = [
        token(tmp_path, "a", f"{digest}  -\n".encode(), "admin"),
        token(tmp_path, "b", hashlib.sha256(b"2").hexdigest().upper().encode()),
    ]
    found = access.read(tokens)

    assert found.caller("Bearer s3cret") == Caller("a", "admin")
    assert found.caller("Bearer 2") == Caller("b", "read")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"s3cret\n", "holds no SHA-256"),
        (b"", "holds no SHA-256"),
        (b"\xff" * 64, "holds no SHA-256"),
        (b"0" * 65, "holds no"),
    ],
)
def test_a_file_without_a_hash_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    """With the command that writes one; a token in the clear is not taken for one."""
    with pytest.raises(TokenError, match=message) as error:
        access.read([token(tmp_path, "t", content)])

    assert "s3cret" not in str(error.value)
    assert "sha256sum" in str(error.value)


def test_a_missing_file_and_a_repeated_token_are_named(tmp_path: Path) -> None:
    """Two names for one token would leave open which role it has."""
    digest = hashlib.sha256(b"1").hexdigest().encode()
    with pytest.raises(TokenError, match=r"`gone`.*cannot be read: No such file"):
        access.read([ApiToken(name="gone", role="read", sha256_file=str(tmp_path / "no"))])
    with pytest.raises(TokenError, match="the same token as `a`"):
        access.read([token(tmp_path, "a", digest), token(tmp_path, "b", digest)])
