"""
The differences of two values, each with its place and its class (rules 5, 7 and 9 of the specification).

Equal parts are passed over by one comparison in C; only what differs is walked. That looks again at each level at all
that lies below, so parts nested deeper than `DEEP` levels are numbered once instead, and their numbers compared: an
answer that is all depth costs a few times what a flat one of its size does.

Lists of equal length are compared by position, unless they hold the same elements in another order. Of lists of
different length the list is named, and elements that have a key (logs, receipts, transactions, withdrawals, traces) are
compared with their partner.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from gnomon.compare import classes
from gnomon.compare.exact import Numbering, Value, canonical
from gnomon.compare.paths import Place

ABSENT: Final = object()
"""Stands for a member that one side does not have."""


DEEP: Final = 16
"""Levels that are compared by the first way; blocks with receipts and logs have five."""


class Difference(NamedTuple):
    """One place where two values differ."""

    place: Place
    class_: str
    primary: Value
    shadow: Value


class TooMany(Exception):
    """The limit of differences is reached; what was found stays in the walk."""


class Walk:
    """One comparison: `differences` after `run`."""

    def __init__(
        self,
        same: Callable[[Value, Value], bool],
        limit: int,
        original_indexes: dict[int, list[int]] | None = None,
    ) -> None:
        """
        Args:
            same: equality between two values (`exact.same`).
            limit: of differences.
            original_indexes: for lists that lost elements to a mask, by `id`: the indexes that the others had.
        """
        self.differences: list[Difference] = []
        self._same = same
        self._key_of: Callable[[Value], Hashable] = canonical
        self._depth = 0
        self._limit = limit
        self._original_indexes = original_indexes or {}

    def run(self, primary: Value, shadow: Value) -> list[Difference]:
        """
        Compare two values; return the differences, none when they are equal.

        Raises:
            TooMany: there are more than the limit; those found are in `differences`.
        """
        if not self._same(primary, shadow):
            self._pair(primary, shadow, None)
        return self.differences

    def _found(self, place: Place, class_: str, a: Value, b: Value) -> None:
        if len(self.differences) >= self._limit:
            raise TooMany
        self.differences.append(Difference(place, class_, a, b))

    def _pair(self, a: Value, b: Value, place: Place) -> None:
        """Walk two values that are known to differ."""
        kind = type(a)
        if kind is not type(b) or (kind is not dict and kind is not list):
            self._found(place, classes.of_values(a, b), a, b)
            return
        walk = self._objects if kind is dict else self._lists
        self._depth += 1
        if self._depth == DEEP:
            shallow = self._same, self._key_of
            numbering = Numbering()
            self._same, self._key_of = numbering.are_same, numbering.of
            walk(a, b, place)
            self._same, self._key_of = shallow
        else:
            walk(a, b, place)
        self._depth -= 1

    def _objects(self, a: dict[str, Value], b: dict[str, Value], place: Place) -> None:
        same = self._same
        missing: list[str] = []
        for name, value in a.items():
            other = b.get(name, ABSENT)
            if other is ABSENT:
                missing.append(name)
            elif not same(value, other):
                if name in _BLOCK_HASHES and _is_reorg(name, a, b):
                    self._found((place, name), "reorg_block_hash", value, other)
                else:
                    self._pair(value, other, (place, name))
        extra = [name for name in b if name not in a] if missing or len(a) != len(b) else []
        if missing and extra:
            missing, extra = self._respelled(a, b, missing, extra, place)
        for name in missing:
            value = a[name]
            self._found((place, name), "null_vs_absent" if value is None else "missing_field", value, ABSENT)
        for name in extra:
            value = b[name]
            self._found((place, name), "null_vs_absent" if value is None else "extra_field", ABSENT, value)

    def _respelled(
        self, a: dict[str, Value], b: dict[str, Value], missing: list[str], extra: list[str], place: Place
    ) -> tuple[list[str], list[str]]:
        """
        Pair member names that are spellings of one hex word; return the names that have no partner.

        Both names are paths of one difference, whose values are the names themselves.
        """
        by_word: dict[str, list[str]] = {}
        for name in extra:
            word = classes.fold_name(name)
            if word is not None:
                by_word.setdefault(word, []).append(name)
        left_missing: list[str] = []
        for name in missing:
            word = classes.fold_name(name)
            partners = by_word.get(word) if word is not None else None
            if not partners:
                left_missing.append(name)
                continue
            partner = partners.pop()
            class_ = classes.of_names(name, partner) or "value"
            self._found((place, name), class_, name, partner)
            self._found((place, partner), class_, name, partner)
            if not self._same(a[name], b[partner]):
                self._pair(a[name], b[partner], (place, name))
        left = {name for names in by_word.values() for name in names}
        return left_missing, [name for name in extra if name in left or classes.fold_name(name) is None]

    def _lists(self, a: list[Value], b: list[Value], place: Place) -> None:
        same = self._same
        indexes = self._original_indexes.get(id(a))
        if len(a) == len(b):
            differing = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if not same(x, y)]
            if len(differing) > 1 and _are_reordered(
                [a[i] for i in differing], [b[i] for i in differing], self._key_of
            ):
                self._found(place, "array_order", a, b)
                return
            for i in differing:
                self._pair(a[i], b[i], (place, i if indexes is None else indexes[i]))
            return
        if not a or not b:
            self._found(place, "empty_vs_data", a, b)
            return
        self._found(place, "array_length", a, b)
        partners = _partners(a, b, self._key_of)
        if partners is None:
            return
        for i, x in enumerate(a):
            y = partners[i]
            if y is not ABSENT and not same(x, y):
                self._pair(x, y, (place, i if indexes is None else indexes[i]))


_BLOCK_HASHES: Final = {"hash": "number", "blockHash": "blockNumber"}
"""A block's hash, and the member beside it that gives the height."""


def _is_reorg(name: str, a: dict[str, Value], b: dict[str, Value]) -> bool:
    """Return whether both sides name one height and two hashes for it."""
    height = _BLOCK_HASHES[name]
    return (
        type(a.get(height)) in (str, int)  # traces give it as a number
        and a[height] == b.get(height)
        and type(a[name]) is str
        and type(b[name]) is str
        and len(a[name]) == len(b[name]) > 2
        and a[name].lower() != b[name].lower()
    )


def _are_reordered(a: list[Value], b: list[Value], key_of: Callable[[Value], Hashable]) -> bool:
    """Return whether two lists of one length hold the same elements."""
    counts: dict[Hashable, int] = {}
    for value in a:
        key = key_of(value)
        counts[key] = counts.get(key, 0) + 1
    for value in b:
        key = key_of(value)
        left = counts.get(key, 0)
        if not left:
            return False
        counts[key] = left - 1
    return True


_KEYS: Final[tuple[tuple[str, ...], ...]] = (
    ("transactionHash", "logIndex"),
    ("transactionHash", "traceAddress"),
    ("traceAddress",),
    ("transactionHash",),
    ("txHash",),
    ("hash",),
    ("index",),
)
"""Members that tell the elements of a list apart; the first set that an element of the list has is used."""


def partners(a: list[Value], b: list[Value]) -> list[Value] | None:
    """Return for each element of one list its partner in the other by key, or ABSENT; None where they have no key."""
    return _partners(a, b, canonical)


def _partners(a: list[Value], b: list[Value], key_of: Callable[[Value], Hashable]) -> list[Value] | None:
    """Return for each element of `a` its partner in `b` or ABSENT; None where the elements have no key."""
    if any(type(x) is not dict for x in a) or any(type(y) is not dict for y in b):
        return None
    names = next((names for names in _KEYS if any(all(name in x for name in names) for x in a)), None)
    if names is None:
        return None
    keys_a, keys_b = _keys(a, names, key_of), _keys(b, names, key_of)
    by_key = {key: y for key, y in zip(keys_b, b, strict=True) if key is not None}
    return [ABSENT if key is None else by_key.get(key, ABSENT) for key in keys_a]


def _keys(
    elements: list[dict[str, Value]], names: tuple[str, ...], key_of: Callable[[Value], Hashable]
) -> list[Hashable | None]:
    """Return the key of each element; None for one that lacks it or shares it with another."""
    keys = [
        None if any(element.get(name) is None for name in names) else tuple(key_of(element[name]) for name in names)
        for element in elements
    ]
    counts = Counter(keys)
    return [key if counts[key] == 1 else None for key in keys]
