"""
ClickHouse's types and values as JSON has them, and as JSON schema says them.

Integers up to 2^53 are numbers, larger ones texts (a double would not hold them); decimals are texts; times are ISO
8601 UTC with `Z`, to the millisecond or as fine as the type; NULL, NaN and infinities are null.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from analytics.questions import plain_type

EXACT_IN_DOUBLE: Final = 2**53

Json = Any
Convert = Callable[[Any], Json]
Schema = dict[str, Any]

_NAME: Final = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)


def integer(value: int) -> int | str:
    """
    Return an integer as JSON can carry it.

    >>> integer(2**53), integer(-(2**53) - 1)
    (9007199254740992, '-9007199254740993')
    """
    return value if -EXACT_IN_DOUBLE <= value <= EXACT_IN_DOUBLE else str(value)


def real(value: float) -> float | None:
    return value if math.isfinite(value) else None


def moment(value: datetime) -> str:
    """
    Return an instant, milliseconds always, finer where there is more.

    >>> moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)), moment(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC))
    ('2026-01-02T03:04:05.000Z', '2026-01-02T03:04:05.000006Z')
    """
    value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    fine = "microseconds" if value.microsecond % 1000 else "milliseconds"
    return value.isoformat(timespec=fine).removesuffix("+00:00") + "Z"


def anything(value: Any) -> Json:
    """Return a value of a type that is not known beforehand."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return integer(value)
        case float():
            return real(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            return moment(value)
        case date():
            return value.isoformat()
        case bytes():
            return value.decode("utf-8", "replace")
        case Mapping():
            return {str(anything(key)): anything(one) for key, one in value.items()}
        case list() | tuple() | set() | frozenset():
            return [anything(one) for one in value]
    return str(value)


def converter(kind: str) -> Convert | None:
    """Return what turns a value of a ClickHouse type into JSON; None where it is JSON already."""
    name, inner = _parts(kind)
    if name == "Nullable":
        convert = converter(inner)
        return None if convert is None else lambda value: None if value is None else convert(value)
    if name in ("String", "Bool") or re.fullmatch(r"U?Int(8|16|32)", name):
        return None
    if name == "DateTime64":
        return moment
    if re.fullmatch(r"Float(32|64)", name):
        return real
    if re.fullmatch(r"U?Int(64|128|256)", name):
        return integer
    return anything


def rows(names: Sequence[str], types: Sequence[str], found: Iterable[Sequence[Any]]) -> list[dict[str, Json]]:
    """Return rows as JSON objects."""
    converters = [converter(kind) for kind in types]
    return [
        {
            name: value if convert is None else convert(value)
            for name, convert, value in zip(names, converters, row, strict=True)
        }
        for row in found
    ]


def schema(kind: str) -> Schema:
    """Return the JSON schema of a ClickHouse type's values as `converter` gives them."""
    name, inner = _parts(kind)
    if name == "Nullable":
        return _or_null(schema(inner))
    if name == "Bool":
        return {"type": "boolean"}
    if re.fullmatch(r"U?Int(8|16|32)", name):
        return {"type": "integer"}
    if re.fullmatch(r"U?Int(64|128|256)", name):
        return {"type": ["integer", "string"], "pattern": r"^-?\d+$"}
    if re.fullmatch(r"Float(32|64)", name):
        return {"type": ["number", "null"]}
    if name == "Decimal":
        return {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"}
    if name.startswith("DateTime"):
        return {"type": "string", "format": "date-time"}
    if name == "Array":
        return {"type": "array", "items": schema(inner)}
    if name == "Map":
        return {"type": "object", "additionalProperties": schema(_split(inner)[-1])}
    return {"type": "string"}


def _or_null(found: Schema) -> Schema:
    kinds = found["type"] if isinstance(found["type"], list) else [found["type"]]
    return {**found, "type": [*kinds, *([] if "null" in kinds else ["null"])]}


def _parts(kind: str) -> tuple[str, str]:
    match = _NAME.fullmatch(plain_type(kind))
    return (match[1], match[2] or "") if match else (kind, "")


def _split(inner: str) -> list[str]:
    """Return the arguments of a type, split at the commas that are not within one."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(inner):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(inner[start:index].strip())
            start = index + 1
    return [*parts, inner[start:].strip()]
