"""
How keys are declared, and the walk that reads a file by the declarations.

`gnomon.config.keys` lists every key once; this module turns a tree into `Values` by that list. Reader, documentation
and tests share it. The walk never stops at a problem: it drops the value, notes why, and goes on.
"""

import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, Literal

from gnomon.config.findings import Findings
from gnomon.config.pending import PENDING
from gnomon.config.scalars import FALSE_WORDS, parse_duration, parse_flag, parse_size
from gnomon.config.source import Node, Resolved, Scalar, Sequence, Table, resolve
from gnomon.config.values import Values

MAX_USD: Final = 10**15
USD_PLACES: Final = 12
"""What every column of money holds exactly."""
Use = Literal["used", "ignored", "guard", "later", "retired"]


class _Absent:
    """The value was not given, or was wrong and has been reported."""


ABSENT: Final = _Absent()


class Kind(ABC):
    """One shape of value."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The shape in words, for documentation and messages."""

    @abstractmethod
    def read(self, node: Node, findings: Findings) -> object:
        """Return the value, or ABSENT after noting what is wrong."""


class ScalarKind(Kind):
    """A shape that one scalar can hold."""

    def read(self, node: Node, findings: Findings) -> object:
        if not isinstance(node, Scalar):
            findings.problem(node.path, f"expected {self.label}, found {describe(node)}")
            return ABSENT
        if _lacks(node, findings):
            return ABSENT
        try:
            value = resolve(node)
            return self.convert(node, value)
        except ValueError as error:
            findings.problem(node.path, str(error))
            return ABSENT

    @abstractmethod
    def convert(self, node: Scalar, value: Resolved) -> object:
        """Return the value; raises ValueError with a message for the user."""


def _lacks(node: Scalar, findings: Findings) -> bool:
    """Note what is wrong with the variables of a value that is wanted; return whether anything is."""
    for message in node.lacks:
        findings.problem(node.path, message)
    return bool(node.lacks)


def describe(node: Node) -> str:
    """Return what a node is, in the words of a message."""
    if isinstance(node, Table):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    return repr(node.text) if len(node.text) <= 40 else repr(node.text[:37] + "...")


@dataclass(frozen=True, slots=True)
class Text(ScalarKind):
    choices: tuple[str, ...] = ()
    is_secret: bool = False

    @property
    def label(self) -> str:
        return " or ".join(f"`{choice}`" for choice in self.choices) if self.choices else "text"

    def read(self, node: Node, findings: Findings) -> object:
        if isinstance(node, Scalar) and _lacks(node, findings):
            return ABSENT
        if isinstance(node, Scalar):  # text keeps what was written: `010` and `1.0` are no numbers here
            try:
                return self.convert(node, node.text)
            except ValueError as error:
                findings.problem(node.path, str(error))
                return ABSENT
        return ScalarKind.read(self, node, findings)

    def convert(self, node: Scalar, value: Resolved) -> str:
        text = node.text
        if node.is_plain and text.lower() in ("true", "false") and not self.choices:
            raise ValueError(f"expected text, found the boolean {text}: quote it if it is meant")
        if not text:
            raise ValueError("is empty")
        if self.choices and text not in self.choices:
            raise ValueError(f"{describe(node)} is not {self.label}{nearest(text, self.choices)}")
        return text


@dataclass(frozen=True, slots=True)
class Integer(ScalarKind):
    minimum: int | None = None
    maximum: int | None = None

    @property
    def label(self) -> str:
        return "whole number"

    def convert(self, node: Scalar, value: Resolved) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            quoted = "" if node.is_plain else " in quotes"
            raise ValueError(f"expected a whole number, found {describe(node)}{quoted}")
        check_bounds(value, self.minimum, self.maximum)
        return value


@dataclass(frozen=True, slots=True)
class Number(ScalarKind):
    minimum: float | None = None
    maximum: float | None = None
    is_open: bool = False
    """The bounds themselves are refused."""

    @property
    def label(self) -> str:
        return "number"

    def convert(self, node: Scalar, value: Resolved) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"expected a number, found {describe(node)}")
        if self.is_open and value in (self.minimum, self.maximum):
            raise ValueError(f"{describe(node)} must lie between {self.minimum} and {self.maximum}, exclusive")
        check_bounds(value, self.minimum, self.maximum)
        return float(value)


@dataclass(frozen=True, slots=True)
class Flag(ScalarKind):
    @property
    def label(self) -> str:
        return "`true` or `false`"

    def convert(self, node: Scalar, value: Resolved) -> bool:
        return parse_flag(node.text)


@dataclass(frozen=True, slots=True)
class Money(ScalarKind):
    @property
    def label(self) -> str:
        return "amount in USD"

    def convert(self, node: Scalar, value: Resolved) -> str:
        try:
            amount = Decimal(node.text)
        except InvalidOperation:
            raise ValueError(f"expected an amount, found {describe(node)}") from None
        if not amount.is_finite() or amount < 0:
            raise ValueError(f"{describe(node)} is not an amount of money: 0 or more")
        exponent = amount.as_tuple().exponent
        if amount > MAX_USD or (isinstance(exponent, int) and exponent < -USD_PLACES):
            raise ValueError(f"{describe(node)} cannot be kept: at most {MAX_USD} USD, to {USD_PLACES} places")
        return format(amount, "f")


@dataclass(frozen=True, slots=True)
class Period(ScalarKind):
    """A duration, in seconds once read."""

    is_zero_allowed: bool = True

    @property
    def label(self) -> str:
        return "duration"

    def convert(self, node: Scalar, value: Resolved) -> float:
        seconds = parse_duration(node.text)
        if seconds < 0:
            raise ValueError(f"{node.text} is negative")
        if seconds == 0 and not self.is_zero_allowed:
            raise ValueError(f"{node.text} must be longer than 0")
        return seconds


@dataclass(frozen=True, slots=True)
class Size(ScalarKind):
    minimum: int = 0

    @property
    def label(self) -> str:
        return "size in bytes"

    def convert(self, node: Scalar, value: Resolved) -> int:
        size = parse_size(node.text)
        check_bounds(size, self.minimum, None)
        return size


@dataclass(frozen=True, slots=True)
class Anything(Kind):
    """Kept as plain Python values: an open set that another room reads."""

    @property
    def label(self) -> str:
        return "any value"

    def read(self, node: Node, findings: Findings) -> object:
        if isinstance(node, Table):
            return {key: self.read(child, findings) for key, child in node.items.items()}
        if isinstance(node, Sequence):
            return [self.read(child, findings) for child in node.items]
        if _lacks(node, findings):
            return ABSENT
        try:
            return resolve(node)
        except ValueError as error:
            findings.problem(node.path, str(error))
            return ABSENT


@dataclass(frozen=True, slots=True)
class Code(Kind):
    """A program of another language: only that it is there is known, `${…}` in it is its own."""

    @property
    def label(self) -> str:
        return "code"

    def read(self, node: Node, findings: Findings) -> object:
        return True


@dataclass(frozen=True, slots=True)
class ListOf(Kind):
    of: Kind
    is_single_allowed: bool = False
    """One value may stand for a list of one (eRPC's older `failsafe`)."""

    @property
    def label(self) -> str:
        return f"list of {self.of.label}"

    def read(self, node: Node, findings: Findings) -> object:
        if not isinstance(node, Sequence):
            if self.is_single_allowed:
                value = self.of.read(node, findings)
                return [] if value is ABSENT else [value]
            findings.problem(node.path, f"expected a {self.label}, found {describe(node)}")
            return ABSENT
        values = [self.of.read(item, findings) for item in node.items]
        return [value for value in values if value is not ABSENT]


@dataclass(frozen=True, slots=True)
class MapOf(Kind):
    of: Kind

    @property
    def label(self) -> str:
        return f"mapping of names to {self.of.label}"

    def read(self, node: Node, findings: Findings) -> object:
        if not isinstance(node, Table):
            findings.problem(node.path, f"expected a {self.label}, found {describe(node)}")
            return ABSENT
        values = {key: self.of.read(child, findings) for key, child in node.items.items()}
        return {key: value for key, value in values.items() if value is not ABSENT}


@dataclass(frozen=True, slots=True)
class Key:
    """One setting."""

    name: str
    kind: Kind
    text: str
    """One sentence: what it does; for a key without effect, why."""
    default: str = ""
    zero: str = ""
    """What 0 means, where it means something."""
    use: Use = "used"
    is_harmless: Callable[[Node], bool] | None = None
    """For a guard: true where this value protects nothing, so that leaving it out changes nothing."""


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping with known keys."""

    name: str
    title: str
    keys: tuple[Key, ...]

    def key(self, name: str) -> Key | None:
        return next((key for key in self.keys if key.name == name), None)


@dataclass(frozen=True, slots=True)
class SectionOf(Kind):
    """A mapping whose keys are those of the named section."""

    name: str
    find: Callable[[str], Section]

    @property
    def label(self) -> str:
        return "mapping"

    def read(self, node: Node, findings: Findings) -> object:
        if not isinstance(node, Table):
            findings.problem(node.path, f"expected a mapping, found {describe(node)}")
            return ABSENT
        return read_section(self.find(self.name), node, findings)


@dataclass(frozen=True, slots=True)
class Either(Kind):
    """A scalar, or a mapping."""

    scalar: Kind
    table: Kind

    @property
    def label(self) -> str:
        return f"{self.scalar.label} or {self.table.label}"

    def read(self, node: Node, findings: Findings) -> object:
        return (self.table if isinstance(node, Table) else self.scalar).read(node, findings)


def read_section(section: Section, node: Table, findings: Findings) -> Values:
    """Return the values of a mapping; unknown keys, wrong values and parts without effect go to `findings`."""
    values = Values(node.path)
    for name, child in node.items.items():
        key = section.key(name)
        if key is None:
            names = [known.name for known in section.keys if known.use != "retired"]
            findings.problem(child.path, f"unknown key{nearest(name, names)}")
            continue
        if is_null(child) and not isinstance(key.kind, Anything):
            continue
        if key.use == "used":
            value = key.kind.read(child, findings)
            if value is ABSENT:
                values.wrong.add(name)
            else:
                values.items[name] = value
                _note_pending(section.name, child, name, findings)
        elif key.is_harmless is not None and key.is_harmless(child):
            continue
        elif key.use == "ignored":
            findings.warn(child.path, f"ignored: {key.text}")
        elif key.use == "guard":
            findings.guard(child.path, key.text)
        else:
            findings.problem(child.path, key.text)
    return values


def _note_pending(section: str, node: Node, name: str, findings: Findings) -> None:
    pending = PENDING.get((section, name))
    if pending is None or _is_switched_off(node):
        return
    if pending.weight == "guard":
        findings.guard(node.path, pending.message)
    else:
        findings.warn(node.path, f"no effect yet: {pending.message}")


def _is_switched_off(node: Node) -> bool:
    """Whether a value asks for nothing: false, empty, or a block that says `enabled: false`."""
    if isinstance(node, Scalar):
        return node.text.lower() in FALSE_WORDS
    if isinstance(node, Table):
        flag = node.items.get("enabled")
        return not node.items or (isinstance(flag, Scalar) and flag.text.lower() in FALSE_WORDS)
    return not node.items


def is_null(node: Node) -> bool:
    """Whether nothing was given; a variable that is not set is something."""
    return (
        isinstance(node, Scalar) and node.is_plain and not node.lacks and node.text in ("", "~", "null", "Null", "NULL")
    )


def check_bounds(value: float, minimum: float | None, maximum: float | None) -> None:
    """Raise ValueError where the value is outside `[minimum, maximum]`; None is no bound."""
    if minimum is not None and value < minimum:
        raise ValueError(f"{value:g} is below {minimum:g}, the least it may be")
    if maximum is not None and value > maximum:
        raise ValueError(f"{value:g} is above {maximum:g}, the most it may be")


def nearest(word: str, known: "tuple[str, ...] | list[str]") -> str:
    """Return `, did you mean X?`, or where nothing is near, the known words if they are few."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    folded = {name.lower().replace("_", "").replace("-", ""): name for name in known}
    same = folded.get(word.lower().replace("_", "").replace("-", ""))
    if same or close:
        return f", did you mean `{same or close[0]}`?"
    return f"; known here: {', '.join(known)}" if 0 < len(known) <= 12 else ""


def walk_keys(sections: Mapping[str, Section]) -> Iterator[tuple[Section, Key]]:
    for section in sections.values():
        for key in section.keys:
            yield section, key
