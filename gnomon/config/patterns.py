"""
eRPC's patterns of method names: `eth_call | trace_*`, `!debug_*`, `eth_* & !(eth_sign* | eth_send*)`.

    pattern  = both { "|" both }
    both     = one { "&" one }
    one      = "!" one | "(" pattern ")" | name
    name     = text in which `*` stands for any text and `?` for one character; `<empty>` is the empty text

Spaces around the signs have no meaning. Comparisons of numbers (`>=0x10`), which eRPC knows for block numbers, say
nothing about a method and are refused.

>>> matches("eth_* & !eth_send*", "eth_call"), matches("eth_* & !eth_send*", "eth_sendRawTransaction")
(True, False)
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

Matcher = Callable[[str], bool]

_TOKEN: Final = re.compile(r"\s*([|&!()]|[^|&!()]+)")
_NAME: Final = re.compile(r"[^\s<>=]+\Z")
_MAX_DEPTH: Final = 50
_KEPT: Final = 4096
"""Compiled patterns kept; they are those of configurations."""


class PatternError(ValueError):
    """The text is no pattern; the message says why."""


def matches(pattern: str, method: str) -> bool:
    """
    Say whether a method fits a pattern; the empty pattern fits the empty name only.

    Raises:
        PatternError: for a text that is no pattern; those of a loaded configuration are.
    """
    return compiled(pattern)(method)


@lru_cache(maxsize=_KEPT)
def compiled(pattern: str) -> Matcher:
    """
    Return the test that a pattern stands for.

    Raises:
        PatternError: for a text that is no pattern.
    """
    if not pattern:
        return lambda method: not method
    parser = _Parser(pattern)
    test = parser.either(0)
    if parser.next is not None:
        raise PatternError(f"`{parser.next}` is one too many")
    return test


def alternatives(pattern: str) -> list[str]:
    """Return the parts of a plain `a | b`; a pattern with any other sign is one part."""
    if any(sign in pattern for sign in "&!()"):
        return [pattern.strip()]
    return [part.strip() for part in pattern.split("|")]


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._tokens = [token.strip() for token in _TOKEN.findall(pattern) if token.strip()]
        self._at = 0

    @property
    def next(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def either(self, depth: int) -> Matcher:
        if depth > _MAX_DEPTH:
            raise PatternError("is nested too deeply")
        parts = [self._both(depth)]
        while self.next == "|":
            self._at += 1
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else lambda method: any(part(method) for part in parts)

    def _both(self, depth: int) -> Matcher:
        parts = [self._one(depth)]
        while self.next == "&":
            self._at += 1
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else lambda method: all(part(method) for part in parts)

    def _one(self, depth: int) -> Matcher:
        token = self.next
        if token is None or token in "|&)":
            raise PatternError("a name is missing" + (f" before `{token}`" if token else " at its end"))
        self._at += 1
        if token == "!":
            inner = self._one(depth + 1) if depth < _MAX_DEPTH else self.either(depth + 1)
            return lambda method: not inner(method)
        if token == "(":
            inner = self.either(depth + 1)
            if self.next != ")":
                raise PatternError("a `)` is missing")
            self._at += 1
            return inner
        return _name(token)


def _name(text: str) -> Matcher:
    if text == "<empty>":
        return lambda method: not method
    if not _NAME.match(text):
        raise PatternError(f"{text!r} is no name of a method")
    if "*" not in text and "?" not in text:
        return lambda method: method == text
    return lambda method: _fits(text, method)


def _fits(pattern: str, text: str) -> bool:
    """Match `*` and `?` by going back to the last star only, so that no pattern takes more than n * m steps."""
    p = t = 0
    star, mark = -1, 0
    while t < len(text):
        if p < len(pattern) and pattern[p] == "*":
            star, mark = p, t
            p += 1
        elif p < len(pattern) and pattern[p] in ("?", text[t]):
            p += 1
            t += 1
        elif star >= 0:
            mark += 1
            p, t = star + 1, mark
        else:
            return False
    return all(sign == "*" for sign in pattern[p:])
