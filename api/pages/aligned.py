"""
Two answers beside each other, line by line: aligned as the comparer aligns them, equal regions folded.

    rows = aligned.rows(primary, shadow, paths)     every line of both, each with the path of its difference, if any
    parts = aligned.folded(rows)                    rows around differences, and how many equal lines lie between

The comparer says what differs (`gnomon.compare`); nothing here decides. Elements of lists that have a key are put
beside their partner, as its walk does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnomon.compare import exact, paths
from gnomon.compare.exact import Value, text_of
from gnomon.compare.walk import ABSENT, partners

CONTEXT = 2
"""Equal lines that stay open on each side of a difference."""
MIN_FOLD = 4
"""Fewer equal lines are not worth a fold."""
MAX_ROWS = 20_000
"""More lines than these are not laid out."""
LONG = 46
"""Characters from which on a hexadecimal word is cut in the middle."""


class TooLong(ValueError):
    """The answers have more than `MAX_ROWS` lines."""


@dataclass(frozen=True, slots=True)
class Side:
    """One line of one answer."""

    number: int
    indent: int
    name: str
    """`"logIndex": `, or empty for an element."""
    text: str
    """The value or bracket, cut where it is long."""
    whole: str
    """The value in full, where the text is cut."""
    end: str
    """A comma, or nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of both; None = the other side has nothing there."""

    left: Side | None
    right: Side | None
    path: str = ""
    """Of the difference that the line belongs to; empty = equal."""

    @property
    def is_equal(self) -> bool:
        return not self.path


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that are shown, or equal ones that are folded."""

    rows: Sequence[Row]
    start: int
    """Number of the first row."""
    is_folded: bool = False
    words: str = ""


def rows(primary: Value, shadow: Value, differing: Iterable[str], root: str = "$.result") -> list[Row]:
    """
    Return the lines of two values.

    Args:
        primary, shadow: decoded by `exact.decode`; ABSENT where a side has no answer.
        differing: the paths that the comparer found, without any mask.
        root: of those paths.

    Raises:
        TooLong: there are more than `MAX_ROWS`.
    """
    layout = _Layout(frozenset(differing))
    layout.value(primary, shadow, "", root, 0, "", "", is_last=(True, True))
    return layout.rows


class _Layout:
    def __init__(self, differing: frozenset[str]) -> None:
        self.rows: list[Row] = []
        self._differing = differing
        self._numbers = [0, 0]

    def value(
        self,
        a: Value,
        b: Value,
        path_of: str,
        path: str,
        indent: int,
        name_a: str,
        name_b: str,
        *,
        is_last: tuple[bool, bool],
    ) -> None:
        """Lay out two values at one place; `path_of` is the difference that they lie in already, or empty."""
        mine = path_of or (path if path in self._differing else "")
        kind = type(a)
        if kind is type(b) and kind in (dict, list) and (a or b):
            opening, closing = ("{", "}") if kind is dict else ("[", "]")
            self._add(mine, indent, (name_a, name_b), (opening, opening), ("", ""))
            # A list that is named as a whole (its order, its length) is still laid out element by element; where one
            # side is empty all of the other belongs to the difference.
            path_of = path_of if a and b else mine
            if kind is dict:
                self._objects(a, b, path_of, path, indent + 1)
            else:
                self._lists(a, b, path_of, path, indent + 1)
            ends = tuple("" if last else "," for last in is_last)
            self._add(path_of, indent, ("", ""), (closing, closing), ends)
            return
        if a is not ABSENT and b is not ABSENT and not mine and a == b and kind not in (dict, list):
            self._leaf(a, b, "", indent, name_a, name_b, is_last)
            return
        if _is_leaf(a) and _is_leaf(b) and a is not ABSENT and b is not ABSENT:
            self._leaf(a, b, mine, indent, name_a, name_b, is_last)
            return
        # Different kinds, or one side alone: each is laid out by itself, the shorter one padded.
        left = [] if a is ABSENT else _lines(a, indent, name_a, "" if is_last[0] else ",")
        right = [] if b is ABSENT else _lines(b, indent, name_b, "" if is_last[1] else ",")
        for at in range(max(len(left), len(right))):
            self._put(mine or path, left[at] if at < len(left) else None, right[at] if at < len(right) else None)

    def _leaf(
        self, a: Value, b: Value, path: str, indent: int, name_a: str, name_b: str, is_last: tuple[bool, bool]
    ) -> None:  # fmt: skip
        left, right = _texts(a, b)
        ends = ("" if is_last[0] else ",", "" if is_last[1] else ",")
        self._put(path, (indent, name_a, *left, ends[0]), (indent, name_b, *right, ends[1]))

    def _objects(self, a: Mapping[str, Value], b: Mapping[str, Value], path_of: str, path: str, indent: int) -> None:
        names = _merged(list(a), list(b))
        left, right = [n for n in names if n in a], [n for n in names if n in b]
        last = (left[-1] if left else None, right[-1] if right else None)
        for name in names:
            shown = text_of(name) + ": "
            self.value(
                a.get(name, ABSENT), b.get(name, ABSENT), path_of, path + paths.member(name), indent, shown, shown,
                is_last=(name == last[0], name == last[1]),
            )  # fmt: skip

    def _lists(self, a: Sequence[Value], b: Sequence[Value], path_of: str, path: str, indent: int) -> None:
        pairs = list(_paired(a, b))
        last_a = max((at for at, (x, _, _) in enumerate(pairs) if x is not ABSENT), default=-1)
        last_b = max((at for at, (_, y, _) in enumerate(pairs) if y is not ABSENT), default=-1)
        is_reordered = len(a) == len(b) and path in self._differing
        for at, (x, y, index) in enumerate(pairs):
            # What only one side has, and what stands elsewhere, belongs to the difference of the list as a whole.
            whole = path_of or (path if x is ABSENT or y is ABSENT or (is_reordered and x != y) else "")
            self.value(x, y, whole, f"{path}[{index}]", indent, "", "", is_last=(at == last_a, at == last_b))

    def _add(self, path: str, indent: int, names: tuple[str, str], texts: tuple[str, str], ends: Any) -> None:
        self._put(path, (indent, names[0], texts[0], "", ends[0]), (indent, names[1], texts[1], "", ends[1]))

    def _put(self, path: str, left: "_Line | None", right: "_Line | None") -> None:
        if len(self.rows) >= MAX_ROWS:
            raise TooLong
        self.rows.append(Row(self._side(0, left), self._side(1, right), path))

    def _side(self, side: int, line: "_Line | None") -> Side | None:
        if line is None:
            return None
        self._numbers[side] += 1
        indent, name, text, whole, end = line
        return Side(self._numbers[side], indent, name, text, whole, end)


_Line = tuple[int, str, str, str, str]
"""Indent, name, text, whole text where it is cut, comma."""


def _is_leaf(value: Value) -> bool:
    return type(value) not in (dict, list) or not value


def _lines(value: Value, indent: int, name: str, end: str) -> list[_Line]:
    """Return the lines of one value by itself."""
    if _is_leaf(value):
        text, whole = _cut(text_of(value))
        return [(indent, name, text, whole, end)]
    is_object = type(value) is dict
    found: list[_Line] = [(indent, name, "{" if is_object else "[", "", "")]
    items = [(text_of(key) + ": ", inner) for key, inner in value.items()] if is_object else [("", v) for v in value]
    for at, (inner_name, inner) in enumerate(items):
        found += _lines(inner, indent + 1, inner_name, "" if at == len(items) - 1 else ",")
        if len(found) > MAX_ROWS:
            raise TooLong
    found.append((indent, "", "}" if is_object else "]", "", end))
    return found


def _merged(a: Sequence[str], b: Sequence[str]) -> list[str]:
    """Return the names of both, each once, in the order of the first; those of the second behind their neighbour."""
    known = set(a)
    found: list[str] = []
    waiting: dict[str | None, list[str]] = {}
    before: str | None = None
    for name in b:
        if name in known:
            before = name
        else:
            waiting.setdefault(before, []).append(name)
    found += waiting.get(None, [])
    for name in a:
        found.append(name)
        found += waiting.get(name, [])
    return found


def _paired(a: Sequence[Value], b: Sequence[Value]) -> Iterator[tuple[Value, Value, int]]:
    """Yield elements beside their partners, with the index that the comparer's path has."""
    beside = partners(list(a), list(b)) if len(a) != len(b) else None
    if beside is None:
        for at in range(max(len(a), len(b))):
            yield a[at] if at < len(a) else ABSENT, b[at] if at < len(b) else ABSENT, at
        return
    taken = {id(y) for y in beside if y is not ABSENT}
    left_over = [(at, y) for at, y in enumerate(b) if id(y) not in taken]
    for at, (x, y) in enumerate(zip(a, beside, strict=True)):
        yield x, y, at
    for at, y in left_over:
        yield ABSENT, y, at


def _texts(a: Value, b: Value) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return two values as texts, cut so that what differs stays."""
    left, right = text_of(a), text_of(b)
    if left != right and max(len(left), len(right)) > LONG:
        same = _common(left, right)
        return _cut(left, same), _cut(right, same)
    return _cut(left), _cut(right)


def _common(a: str, b: str) -> int:
    at = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        at += 1
    return at


def _cut(text: str, around: int | None = None) -> tuple[str, str]:
    """Return a text as it is shown, and in full where that is less."""
    if len(text) <= LONG:
        return text, ""
    if around is None or around < 12:
        head = 12 if text.startswith('"0x') else LONG - 12
        return f"{text[:head]}…{text[-8:]}", text
    start = max(around - 8, 0)
    end = min(start + 30, len(text))
    return f"{text[:6]}…{text[start:end]}" + (f"…{text[-4:]}" if end < len(text) - 4 else text[end:]), text


def folded(found: Sequence[Row]) -> list[Part]:
    """Return rows around differences, and folds for what lies between."""
    shown = [False] * len(found)
    for at, row in enumerate(found):
        if not row.is_equal:
            for near in range(max(0, at - CONTEXT), min(len(found), at + CONTEXT + 1)):
                shown[near] = True
    if found:
        shown[0] = shown[-1] = True
    parts: list[Part] = []
    at = 0
    while at < len(found):
        end = at
        while end < len(found) and shown[end] == shown[at]:
            end += 1
        group = found[at:end]
        if shown[at] or len(group) < MIN_FOLD:
            if parts and not parts[-1].is_folded:
                parts[-1] = Part([*parts[-1].rows, *group], parts[-1].start)
            else:
                parts.append(Part(group, at))
        else:
            parts.append(Part(group, at, True, _fold_words(group)))
        at = end
    return parts


def _fold_words(group: Sequence[Row]) -> str:
    names = [row.left.name[1:-3] for row in group if row.left and row.left.name]
    top = min((row.left.indent for row in group if row.left), default=0)
    named = [row.left.name[1:-3] for row in group if row.left and row.left.name and row.left.indent == top]
    some = ", ".join(list(dict.fromkeys(named or names))[:3])
    more = ", …" if len(set(named or names)) > 3 else ""
    return f"{len(group):,} equal lines" + (f": {some}{more}" if some else "")


def decoded(kind: str, body: str) -> Value:
    """
    Return one side's answer for `rows`.

    Raises:
        NotJson, TooDeep: it cannot be read.
    """
    return ABSENT if kind == "none" or not body else exact.decode(body.encode("utf-8", "surrogatepass"))
