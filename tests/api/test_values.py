"""ClickHouse's values as JSON has them, and as the schema says they are."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from api import values

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("String", 'a"\n☃', 'a"\n☃'),
        ("Bool", True, True),
        ("UInt8", 255, 255),
        ("UInt32", 2**32 - 1, 2**32 - 1),
        ("UInt64", 2**53, 2**53),
        ("UInt64", 2**53 + 1, "9007199254740993"),
        ("UInt64", 2**64 - 1, "18446744073709551615"),
        ("Int64", -(2**53) - 1, "-9007199254740993"),
        ("UInt256", 2**256 - 1, str(2**256 - 1)),
        ("Float64", 0.1, 0.1),
        ("Float64", float("nan"), None),
        ("Float32", float("inf"), None),
        ("Decimal(38, 12)", Decimal("0.000010500000"), "0.000010500000"),
        ("Decimal(38, 12)", Decimal("1E-12"), "0.000000000001"),
        ("Nullable(Decimal(38, 12))", None, None),
        ("Nullable(UInt64)", None, None),
        ("Nullable(UInt64)", 2**60, str(2**60)),
        ("DateTime64(3, 'UTC')", AT, "2026-01-02T03:04:05.678Z"),
        ("DateTime", AT.replace(microsecond=0, tzinfo=None), "2026-01-02T03:04:05.000Z"),
        ("DateTime64(6, 'UTC')", AT + timedelta(microseconds=9), "2026-01-02T03:04:05.678009Z"),
        ("DateTime64(3)", AT.astimezone(timezone(timedelta(hours=2))), "2026-01-02T03:04:05.678Z"),
        ("Nullable(DateTime64(3, 'UTC'))", None, None),
        ("Date", date(2026, 1, 2), "2026-01-02"),
        ("Array(UInt64)", [1, 2**60], [1, str(2**60)]),
        ("Map(LowCardinality(String), UInt64)", {"timeout": 3}, {"timeout": 3}),
        ("Tuple(String, Float64)", ("a", float("nan")), ["a", None]),
    ],
)
def test_a_value_is_exact(kind: str, value: object, expected: object) -> None:
    """Nothing is rounded: what a double cannot hold is a text."""
    assert values.rows(["x"], [kind], [[value]]) == [{"x": expected}]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("LowCardinality(String)", {"type": "string"}),
        ("Nullable(Bool)", {"type": ["boolean", "null"]}),
        ("UInt16", {"type": "integer"}),
        ("UInt64", {"type": ["integer", "string"], "pattern": r"^-?\d+$"}),
        ("Nullable(Float64)", {"type": ["number", "null"]}),
        ("Nullable(Decimal(38, 12))", {"type": ["string", "null"], "pattern": r"^-?\d+(\.\d+)?$"}),
        ("DateTime64(3, 'UTC')", {"type": "string", "format": "date-time"}),
        ("Array(LowCardinality(String))", {"type": "array", "items": {"type": "string"}}),
        (
            "Map(String, Array(UInt8))",
            {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
        ),
        ("Point", {"type": "string"}),
    ],
)
def test_a_type_has_a_schema(kind: str, expected: dict[str, Any]) -> None:
    """Every value that the type can have fits it."""
    assert values.schema(kind) == expected


def test_what_comes_out_can_be_written() -> None:
    """Whatever goes in."""
    odd = [b"\xff", {1: Decimal("1")}, {AT}, object, 2**70, float("-inf")]
    written = msgspec.json.encode(values.anything(odd))

    assert msgspec.json.decode(written)[:3] == ["\ufffd", {"1": "1"}, ["2026-01-02T03:04:05.678Z"]]
