"""
Cordons: upstreams that are kept out of routing by hand, until somebody takes that back or their time has come.

A cordon is of a name, not of a state: it survives a reload, a restart, and an upstream whose endpoint has changed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import Struct

MAX_CORDONS: Final = 10_000
MAX_CHARACTERS: Final = 1000
"""Of a comment, and of a name."""

Key = tuple[str, str]
"""Project and upstream."""


class Cordon(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One upstream, kept out by hand."""

    project: str
    upstream: str
    at: float
    """UTC seconds."""
    until: float | None = None
    """UTC seconds, exclusive; None: until it is taken back."""
    comment: str = ""
    author: str = ""

    @property
    def key(self) -> Key:
        return self.project, self.upstream


@dataclass(frozen=True, slots=True)
class Candidate:
    """An upstream of the network that is asked about."""

    name: str
    is_fallback: bool
    can_serve: bool
    """Its chain is the network's, and neither a cordon, a hold nor a breaker keeps it out now."""


@dataclass(frozen=True, slots=True)
class Remaining:
    """Who could serve while one is cordoned."""

    n_primaries: int
    n_fallbacks: int

    @property
    def objection(self) -> str:
        """What speaks against the cordon; empty: nothing."""
        if self.n_primaries or self.n_fallbacks:
            return ""
        return "no upstream of the network could serve any more; say `force` to cordon it all the same"


def remaining(target: str, candidates: Iterable[Candidate]) -> Remaining:
    """Return who of a network could serve without one of its upstreams."""
    others = [candidate for candidate in candidates if candidate.name != target and candidate.can_serve]
    n_fallbacks = sum(other.is_fallback for other in others)
    return Remaining(len(others) - n_fallbacks, n_fallbacks)


class Cordons:
    """The cordons in force, by project and upstream."""

    def __init__(self, found: Iterable[Cordon] = ()) -> None:
        self._by_key = {cordon.key: cordon for cordon in found}

    def __len__(self) -> int:
        return len(self._by_key)

    @property
    def all(self) -> tuple[Cordon, ...]:
        return tuple(self._by_key[key] for key in sorted(self._by_key))

    def find(self, project: str, upstream: str) -> Cordon | None:
        return self._by_key.get((project, upstream))

    def put(self, cordon: Cordon) -> None:
        """Put one in force, in place of an earlier one of the same upstream."""
        self._by_key[cordon.key] = cordon

    def take(self, key: Key) -> Cordon | None:
        """Take one back; return it, or None where there is none."""
        return self._by_key.pop(key, None)

    def due(self, now: float) -> list[Cordon]:
        """Return those whose time has come."""
        return [cordon for cordon in self._by_key.values() if cordon.until is not None and cordon.until <= now]


def encode(cordons: Cordons) -> bytes:
    """Return cordons as they are kept."""
    return msgspec.json.format(msgspec.json.encode({"v": 1, "cordons": cordons.all}), indent=1) + b"\n"


class _File(Struct):
    v: int
    cordons: list[Cordon]


def decode(text: bytes) -> Cordons:
    """
    Return the cordons that `encode` has kept.

    Raises:
        ValueError: it is no such text.
    """
    try:
        found = msgspec.json.decode(text, type=_File)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
    if found.v != 1:
        raise ValueError(f"version {found.v} is not known")
    return Cordons(found.cordons)
