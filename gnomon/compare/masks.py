"""
Masks: the members of a result that do not count.

    blockTimestamp              a member of the result
    *.blockTimestamp            of each element (the result is a list), or of each member
    *.logs.*.blockTimestamp     `*` stands for exactly one member or index
    **.blockTimestamp           `**` for any number of them, none included
    logs.0.data                 an index is written as a member
    "a.b".c   or   'a.b'.c      a name with dots, quotes or stars is quoted; a backslash keeps the next character

These are no masks: "" · ".a" · "a..b" · "a." · "$.result.a" · "a[0]" · "a**" · "**" · "'a" · "'a'b".

A mask is a path from the root of the result; whole segments match, never a part of a name. All masks of a set hold at
once: their order never matters, and a mask never switches another off. Masks do not touch errors.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from gnomon.compare.errors import MaskError
from gnomon.compare.exact import Value

MAX_MASKS: Final = 1000
MAX_MASK_CHARACTERS: Final = 1000


class _Wild:
    __slots__ = ("sign",)

    def __init__(self, sign: str) -> None:
        self.sign = sign

    def __repr__(self) -> str:
        return self.sign


_ONE: Final = _Wild("*")
_ANY: Final = _Wild("**")
Segment = str | _Wild
Pattern = tuple[Segment, ...]


# --- reading ----------------------------------------------------------------------------------------------------------


def parse(text: str) -> Pattern:
    """
    Return the segments of one mask.

    Raises:
        MaskError: it is no mask; the message points at the character.
    """
    if not text.strip():
        raise MaskError(text, 0, "is empty")
    if len(text) > MAX_MASK_CHARACTERS:
        raise MaskError(text[:60] + "…", 0, f"has more than {MAX_MASK_CHARACTERS} characters")
    if text.startswith("$"):
        raise MaskError(text, 0, "masks start at the result itself: leave out $.result, and write [*] as *")
    segments: list[Segment] = []
    position = 0
    while True:
        segment, position = _segment(text, position)
        if segment is not _ANY or segments[-1:] != [_ANY]:
            segments.append(segment)
        if position == len(text):
            break
        position += 1  # the dot
    if segments[-1] is _ANY:
        raise MaskError(text, len(text) - 2, "ends in **; end in the member that is to be left out")
    return tuple(segments)


def _segment(text: str, start: int) -> tuple[Segment, int]:
    """Return the segment that begins at `start`, and where it ends: at a dot or at the end of the text."""
    if start == len(text):
        raise MaskError(text, start - 1, "ends in a dot")
    if text[start] in "'\"":
        name, end = _quoted(text, start)
        if end < len(text) and text[end] != ".":
            raise MaskError(text, end, "a dot belongs after a quoted name")
        return name, end
    end = text.find(".", start)
    end = len(text) if end < 0 else end
    name = text[start:end]
    if not name:
        raise MaskError(text, start, "an empty segment; quote a name that is empty or holds dots")
    if name == "*":
        return _ONE, end
    if name == "**":
        return _ANY, end
    for offset, character in enumerate(name):
        if character == "*":
            raise MaskError(text, start + offset, "a star stands alone between dots; quote a name that holds one")
        if character in "[]":
            raise MaskError(text, start + offset, "no brackets: write an index as a segment (logs.0.data, logs.*.data)")
        if character in "'\"\\" or character.isspace():
            raise MaskError(text, start + offset, "quote a name that holds quotes, backslashes or white space")
    return name, end


def _quoted(text: str, start: int) -> tuple[str, int]:
    quote = text[start]
    name: list[str] = []
    position = start + 1
    while position < len(text):
        character = text[position]
        if character == quote:
            return "".join(name), position + 1
        if character == "\\":
            position += 1
            if position == len(text):
                break
            character = text[position]
        name.append(character)
        position += 1
    raise MaskError(text, start, "the quote is never closed")


def show(pattern: Pattern) -> str:
    """Return the one spelling of a mask that `parse` reads back."""
    return ".".join(segment.sign if isinstance(segment, _Wild) else show_name(segment) for segment in pattern)


def show_name(name: str) -> str:
    """Return the segment that stands for exactly this member, quoted where it must be."""
    is_plain = name and not any(c in ".*[]'\"\\$" or c.isspace() for c in name)
    if is_plain:
        return name
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


# --- matching ---------------------------------------------------------------------------------------------------------


class _State:
    """The masks that are alive at one level of a result, as a state of an automaton built on demand."""

    __slots__ = ("_cache", "_items", "has_indexes", "names", "other")

    def __init__(self, items: frozenset[Pattern], cache: "dict[frozenset[Pattern], _State]") -> None:
        self._items = items
        self._cache = cache
        cache[items] = self
        self.names: dict[str, _State | None] = {}
        """Member → what holds below it; None: the member goes."""
        named = {pattern[0] for pattern in items if isinstance(pattern[0], str)}
        self.has_indexes = any(name.isdigit() for name in named)
        self.other: _State | None = self._below(None)
        for name in named:
            self.names[name] = self._below(name)

    def _below(self, name: str | None) -> "_State | None":
        """Return what holds below a member (None: any that no mask names); None where the member goes."""
        rest: set[Pattern] = set()
        for pattern in self._items:
            first = pattern[0]
            if first is _ANY:
                rest |= _closure(pattern)
            elif first is _ONE or first == name:
                if len(pattern) == 1:
                    return None
                rest |= _closure(pattern[1:])
        key = frozenset(rest)
        return self._cache.get(key) or _State(key, self._cache)

    @property
    def is_dead(self) -> bool:
        return not self._items


def _closure(pattern: Pattern) -> set[Pattern]:
    """`**` may stand for nothing, so what comes after it holds as well."""
    return {pattern, pattern[1:]} if pattern[0] is _ANY else {pattern}


@dataclass(frozen=True, slots=True)
class MaskSet:
    """Compiled masks; equal and hashable by what they say."""

    masks: tuple[str, ...] = ()
    """Each in its one spelling, sorted, none twice."""
    _start: _State | None = field(default=None, repr=False, compare=False)

    @property
    def version(self) -> str:
        """Return a hash of the masks: the same for the same masks in any order and spelling; '' for none."""
        if not self.masks:
            return ""
        return hashlib.sha256("\n".join(self.masks).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def __bool__(self) -> bool:
        return bool(self.masks)

    def remove(self, value: Value, original_indexes: dict[int, list[int]] | None = None) -> int:
        """
        Take the masked members out of a decoded result, in place.

        Args:
            value: the result; it is changed.
            original_indexes: receives, by `id` of each list that lost elements, the indexes of those that stay.

        Returns:
            How many members and elements were removed.
        """
        if self._start is None:
            return 0
        return _remove(value, self._start, original_indexes if original_indexes is not None else {})

    def covers(self, keys: Iterable[str | int]) -> bool:
        """Say whether a place is a masked member, or lies below one; `keys` lead to it from the root of the result."""
        state = self._start
        for key in keys:
            if state is None:
                return False
            below = state.names.get(str(key), state.other)
            if below is None:
                return True
            state = below
        return False


NO_MASKS: Final = MaskSet()


def _remove(value: Value, state: _State, original_indexes: dict[int, list[int]]) -> int:
    if type(value) is dict:
        return _remove_members(value, state, original_indexes)
    if type(value) is list:
        return _remove_elements(value, state, original_indexes)
    return 0


def _remove_members(members: dict[str, Value], state: _State, original_indexes: dict[int, list[int]]) -> int:
    n = 0
    other = state.other
    if other is not None and other.is_dead:
        for name, below in state.names.items():
            if name not in members:
                continue
            if below is None:
                del members[name]
                n += 1
            else:
                n += _remove(members[name], below, original_indexes)
        return n
    for name in list(members):
        below = state.names.get(name, other)
        if below is None:
            del members[name]
            n += 1
        else:
            n += _remove(members[name], below, original_indexes)
    return n


def _remove_elements(elements: list[Value], state: _State, original_indexes: dict[int, list[int]]) -> int:
    other = state.other
    if not state.has_indexes:
        if other is None:
            n = len(elements)
            elements.clear()
            return n
        if other.is_dead:
            return 0
        n = 0
        for element in elements:
            if type(element) is dict:
                n += _remove_members(element, other, original_indexes)
            elif type(element) is list:
                n += _remove_elements(element, other, original_indexes)
        return n
    n = 0
    kept: list[int] = []
    for index, element in enumerate(elements):
        below = state.names.get(str(index), other)
        if below is None:
            n += 1
        else:
            kept.append(index)
            n += _remove(element, below, original_indexes)
    if len(kept) < len(elements):
        elements[:] = [elements[index] for index in kept]
        original_indexes[id(elements)] = kept
    return n


def compile(masks: Iterable[str]) -> MaskSet:
    """
    Return the masks as one set.

    Args:
        masks: their texts, in any order.

    Raises:
        MaskError: one of them is no mask (the message points into its text), or there are too many.
    """
    return _compile(tuple(masks))


@lru_cache(maxsize=1024)
def _compile(texts: tuple[str, ...]) -> MaskSet:
    if len(texts) > MAX_MASKS:
        raise MaskError(texts[MAX_MASKS], 0, f"is one mask too many; there may be {MAX_MASKS}")
    patterns = {show(pattern): pattern for pattern in map(parse, texts)}
    if not patterns:
        return NO_MASKS
    items = frozenset(alive for pattern in patterns.values() for alive in _closure(pattern))
    return MaskSet(tuple(sorted(patterns)), _State(items, {}))
