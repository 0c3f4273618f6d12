"""Short forms for declaring keys: `section("retry")`, `ignored("metrics", why)`, `guard("store", why)`."""

from collections.abc import Callable

from gnomon.config.scalars import FALSE_WORDS, TRUE_WORDS
from gnomon.config.schema import Anything, Either, Key, Kind, ListOf, MapOf, Period, Section, SectionOf, Text
from gnomon.config.source import Node, Scalar, Sequence, Table

MAX_CHAIN_ID = (1 << 63) - 1
TEXTS = ListOf(Text())
TOLERANCES = Either(TEXTS, MapOf(TEXTS))
"""`CLASS` or `CLASS@PATH`, for all methods or by method; the comparison's compiler reads them."""


SECTIONS: dict[str, Section] = {}
"""All sections by name; `gnomon.config.keys` fills it with what is declared, as sections name each other."""


def section(name: str) -> SectionOf:
    return SectionOf(name, SECTIONS.__getitem__)


def ignored(name: str, why: str) -> Key:
    return Key(name, Anything(), why, use="ignored")


def guard(name: str, why: str, is_harmless: Callable[[Node], bool] | None = None) -> Key:
    return Key(name, Anything(), why, use="guard", is_harmless=is_harmless)


def later(name: str, why: str, is_harmless: Callable[[Node], bool] | None = None) -> Key:
    return Key(name, Anything(), why, use="later", is_harmless=is_harmless)


def retired(name: str, now: str) -> Key:
    return Key(name, Anything(), f"is called `{now}` now", use="retired")


def is_off(node: Node) -> bool:
    return isinstance(node, Scalar) and node.text.lower() in FALSE_WORDS


def is_on(node: Node) -> bool:
    return isinstance(node, Scalar) and node.text.lower() in TRUE_WORDS


def is_disabled(node: Node) -> bool:
    """Whether a block says `enabled: false`, or nothing."""
    flag = node.items.get("enabled") if isinstance(node, Table) else None
    return is_empty(node) or is_off(node) or (flag is not None and is_off(flag))


def is_empty(node: Node) -> bool:
    return isinstance(node, Table | Sequence) and not node.items


def is_word(*words: str) -> Callable[[Node], bool]:
    return lambda node: isinstance(node, Scalar) and node.text in words


def adaptive(*, is_zero_allowed: bool) -> Kind:
    return Either(Period(is_zero_allowed), section("adaptive"))
