"""
Named questions: `analytics/queries/NAME.sql`, one SELECT each, with a header that says what it answers.

    -- question: Which methods differ most between primary and shadow?
    -- grain: one row per network, method and shadow
    -- param from DateTime64(3) = now-24h: start of the range, included
    -- param to DateTime64(3) = now: end of the range, not included
    -- param network String = '': only this network; empty = all
    -- column method String: JSON-RPC method
    -- column n UInt64 [pairs]: compared pairs
    -- column mismatch_ratio Nullable(Float64) [0 to 1]: differing pairs by pairs
    SELECT …

Rules: `question` and `grain` once, then parameters, then every column of the result in its order with its ClickHouse
type (LowCardinality left out), a unit in brackets where it has one. A parameter without `= default` must be given. A
default is a number, a text in quotes, or a time: ISO 8601, `now`, or `now-24h` (s, m, h, d, w). The statement binds
`{name:Type}` with the types of the header, has a LIMIT, no FORMAT and no SETTINGS: the caller sends `SETTINGS` below,
and a reader of the embedded ClickHouse may send no other.

A question that is read page by page gives the newest rows first, by `at` and further columns that make the order
total, and binds where a page begins: `at` below `to`, or equal and the further ones below `before_COLUMN` (texts, by
default empty), `limit` rows of it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import resources

from gnomon.errors import UsageError

SETTINGS: Mapping[str, int] = {"max_execution_time": 30, "max_result_rows": 1_000_000}
"""Limits of every question; ClickHouse refuses what goes beyond."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_HEADER = re.compile(r"--\s*(question|grain|param|column)\b:?\s*(.*)")
_PARAM = re.compile(
    r"(?P<name>[a-z][a-z0-9_]*)\s+(?P<type>[A-Z]\w*(?:\([^:=]*\))?)\s*(?:=\s*(?P<default>'[^']*'|[^:\s]\S*?))?\s*:\s+(?P<meaning>\S.*)"
)
_COLUMN = re.compile(
    r"(?P<name>\w+)(?:\s+(?P<type>[A-Z]\w*(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?))?\s*"
    r"(?:\[(?P<unit>[^\]]+)\])?\s*:\s+(?P<meaning>\S.*)"
)
_LIMIT = re.compile(r"\bLIMIT\s+(\d+)\s*\Z")
_LOW_CARDINALITY = re.compile(r"LowCardinality\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*):([^{}]+)\}")
_TIME = re.compile(r"now(?:\s*-\s*(\d+)([smhdw]))?")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_FIRST_YEAR, _LAST_YEAR = 1900, 2299
"""What a DateTime64 holds."""
_BEFORE = "before_"


class BadQuestion(ValueError):
    """A shipped file that breaks the rules above: a fault of this package."""


class UnknownQuestion(UsageError):
    """No question of that name."""


class BadParameter(UsageError):
    """A parameter that the question has not, that is missing, or whose value does not fit its type."""


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: str
    """ClickHouse type."""
    default: str | None
    """As written, quotes removed; None = must be given."""
    meaning: str

    def value(self, text: str, now: datetime) -> str | list[str]:
        """
        Return what is bound for a text of the user or of the header.

        Raises:
            BadParameter: it does not fit the type.
        """
        if self.type.startswith("DateTime"):
            return moment(f"parameter {self.name}", text, now).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        if re.fullmatch(r"U?Int\d+", self.type):
            if not re.fullmatch(r"-?\d{1,80}", text, re.ASCII) or int(text) not in integers(self.type):
                raise BadParameter(f"parameter {self.name}: {text!r} is no {self.type}")
        elif self.type == "Array(String)":
            return [part for part in (piece.strip(" '\"") for piece in text.strip("[] ").split(",")) if part]
        elif self.type.startswith(("Float", "Decimal")) and not re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", text):
            raise BadParameter(f"parameter {self.name}: {text!r} is no number")
        return text


@dataclass(frozen=True, slots=True)
class ResultColumn:
    name: str
    type: str
    """ClickHouse type without LowCardinality; empty where the header does not say it."""
    unit: str
    """Empty where it has none."""
    meaning: str


@dataclass(frozen=True, slots=True)
class Question:
    name: str
    question: str
    grain: str
    parameters: tuple[Parameter, ...]
    columns: tuple[ResultColumn, ...]
    sql: str

    @property
    def most_rows(self) -> int | None:
        """The rows that the statement gives at most; None where a parameter says so."""
        found = _LIMIT.search(self.sql)
        return int(found[1]) if found else None

    @property
    def page_key(self) -> tuple[str, ...]:
        """The columns behind `at` that say where a page begins; empty where it is not read page by page."""
        return tuple(p.name.removeprefix(_BEFORE) for p in self.parameters if p.name.startswith(_BEFORE))

    def moment(self, name: str, given: Mapping[str, str], now: datetime) -> datetime | None:
        """
        Return the instant that a parameter stands for; None where there is no such parameter, or it has no value.

        Raises:
            BadParameter: it is no time.
        """
        for parameter in self.parameters:
            text = given.get(name, parameter.default)
            if parameter.name == name and parameter.type.startswith("DateTime") and text is not None:
                return moment(f"parameter {name}", text, now)
        return None

    def bind(
        self, given: Mapping[str, str], now: datetime, configured: Mapping[str, list[str]] | None = None
    ) -> dict[str, str | list[str]]:
        """
        Return the value of every parameter.

        Args:
            given: by name, as the user wrote them; the rest take their defaults.
            now: aware UTC; what `now` means.
            configured: values that the configuration gives, in place of defaults.

        Raises:
            BadParameter: with the names that there are.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                names = ", ".join(known) or "none"
                raise BadParameter(f"question {self.name} has no parameter {name!r}; it has: {names}")
        bound: dict[str, str | list[str]] = {}
        for name, parameter in known.items():
            if name not in given and configured is not None and name in configured:
                bound[name] = configured[name]
                continue
            text = given.get(name, parameter.default)
            if text is None:
                raise BadParameter(
                    f"question {self.name} needs --param {name}=… ({parameter.type}: {parameter.meaning})"
                )
            bound[name] = parameter.value(text, now)
        return bound


def parse(name: str, text: str) -> Question:
    """
    Return the question of a file.

    Raises:
        BadQuestion: naming the line or the rule that is broken.
    """
    said: dict[str, str] = {}
    parameters: list[Parameter] = []
    columns: list[ResultColumn] = []
    lines = text.splitlines()
    n_header = 0
    for line in lines:
        if not line.startswith("--"):
            break
        n_header += 1
        match = _HEADER.fullmatch(line.strip())
        if match is None:
            raise BadQuestion(f"{name}.sql: {line!r} is no line of a header")
        kind, rest = match.groups()
        if kind in ("question", "grain"):
            if kind in said or not rest:
                raise BadQuestion(f"{name}.sql: {kind} must stand once, with a text")
            said[kind] = rest
        elif kind == "param":
            fields = _PARAM.fullmatch(rest)
            if fields is None:
                raise BadQuestion(f"{name}.sql: {line!r} is not `-- param NAME Type [= default]: meaning`")
            default = fields["default"]
            if default is not None and default.startswith("'"):
                default = default[1:-1]
            parameters.append(Parameter(fields["name"], fields["type"], default, fields["meaning"]))
        else:
            try:
                columns.append(column(rest))
            except BadQuestion as error:
                raise BadQuestion(f"{name}.sql: {error}") from error
    sql = "\n".join(lines[n_header:]).strip().rstrip(";")
    for needed in ("question", "grain"):
        if needed not in said:
            raise BadQuestion(f"{name}.sql: the header has no `-- {needed}:`")
    if not columns:
        raise BadQuestion(f"{name}.sql: the header names no column")
    placeholders = {(key, kind.replace(" ", "")) for key, kind in _PLACEHOLDER.findall(sql)}
    declared = {(parameter.name, parameter.type.replace(" ", "")) for parameter in parameters}
    if placeholders != declared:
        odd = ", ".join(sorted(f"{{{key}:{kind}}}" for key, kind in placeholders ^ declared))
        raise BadQuestion(f"{name}.sql: header and statement do not have the same parameters: {odd}")
    if len({parameter.name for parameter in parameters}) != len(parameters):
        raise BadQuestion(f"{name}.sql: a parameter stands twice")
    question = Question(name, said["question"], said["grain"], tuple(parameters), tuple(columns), sql)
    question.bind({p.name: "0" for p in parameters if p.default is None and not p.type.startswith("DateTime")}
                  | {p.name: "now" for p in parameters if p.default is None and p.type.startswith("DateTime")},
                  datetime(2026, 1, 1, tzinfo=UTC))  # fmt: skip
    return question


def column(line: str) -> ResultColumn:
    """
    Return the column that a line tells: `NAME Type [unit]: meaning`.

    Raises:
        BadQuestion: it is none.
    """
    fields = _COLUMN.fullmatch(line)
    if fields is None:
        raise BadQuestion(f"{line!r} is not `column NAME [unit]: meaning`")
    return ResultColumn(fields["name"], plain_type(fields["type"] or ""), fields["unit"] or "", fields["meaning"])


def names() -> tuple[str, ...]:
    """Return the names of the shipped questions, in order."""
    entries = (resources.files("analytics") / "queries").iterdir()
    return tuple(sorted(entry.name[:-4] for entry in entries if entry.name.endswith(".sql")))


def load(name: str) -> Question:
    """
    Return a shipped question.

    Raises:
        UnknownQuestion: with what comes near.
    """
    if _NAME.fullmatch(name):
        entry = resources.files("analytics") / "queries" / f"{name}.sql"
        if entry.is_file():
            return parse(name, entry.read_text(encoding="utf-8"))
    import difflib

    near = difflib.get_close_matches(name, names(), 3, 0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "`gnomon query --list` names them all"
    raise UnknownQuestion(f"there is no question {name!r}; {hint}")


def load_all() -> tuple[Question, ...]:
    """Return every shipped question, by name."""
    return tuple(load(name) for name in names())


def moment(name: str, text: str, now: datetime) -> datetime:
    """
    Return the instant that a text of the user means, aware UTC.

    Args:
        name: what the text is, for the message.
        text: ISO 8601, `now`, or `now-24h`.
        now: aware UTC.

    Raises:
        BadParameter: it is no time.
    """
    try:
        if (match := _TIME.fullmatch(text.strip())) is not None:
            at = now - timedelta(seconds=int(match[1] or 0) * _UNIT_SECONDS[match[2] or "s"])
        else:
            at = datetime.fromisoformat(text.strip())
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:
        raise BadParameter(f"{name}: {text!r} is too far away") from None
    except ValueError:
        raise BadParameter(
            f"{name}: {text!r} is no time; give ISO 8601 (UTC unless it says otherwise), now, or now-24h"
        ) from None
    if not _FIRST_YEAR <= at.year <= _LAST_YEAR:
        raise BadParameter(f"{name}: {text!r} is not within the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return at


def integers(kind: str) -> range:
    """
    Return the values of a ClickHouse type such as `UInt32`.

    >>> integers("Int8")
    range(-128, 128)
    """
    n_bits = int(kind.lstrip("UInt"))
    return range(1 << n_bits) if kind.startswith("U") else range(-(1 << (n_bits - 1)), 1 << (n_bits - 1))


def plain_type(kind: str) -> str:
    """
    Return a ClickHouse type without LowCardinality, which says how values are stored and not what they are.

    >>> plain_type("Map(LowCardinality(String), LowCardinality(Nullable(String)))")
    'Map(String, Nullable(String))'
    """
    return _LOW_CARDINALITY.sub(r"\1", kind)
