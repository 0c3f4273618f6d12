"""Examples for the document: a value for each name that columns have, so that an example has exactly the columns."""

from collections.abc import Mapping
from typing import Any, Final

from analytics.questions import Question, ResultColumn

REQUEST_ID: Final = "01JE5W3Z8Q4X0000000000ABCD"

_BY_NAME: Final[Mapping[str, Any]] = {
    "network": "evm:1", "method": "eth_getBlockByNumber", "primary_upstream": "mine", "shadow_upstream": "candidate",
    "upstream": "mine", "vendor": "alchemy", "account": "acme", "tier": "fallback", "kind": "client",
    "cause": "empty_at_head", "request_id": REQUEST_ID, "event_id": "00d1e2f3a4b5c6d7:4711",
    "example_request_id": REQUEST_ID, "outcome": "mismatch",
    "class": "value", "finality": "finalized", "settled": "", "suspect": "", "block_number": 21_300_000,
    "generic_path": "$.result.size", "path": "$.result.size", "primary_value": '"0x481"', "shadow_value": '"0x47e"',
    "primary_hash": "2f1c0a7b9d3e4f5061728394a5b6c7d8", "shadow_hash": "a90b8c7d6e5f40312213243546576879",
    "mask_version": "ethereum@1", "tolerance_version": "", "rule": "FallbackSpend", "subject": "acme",
    "state": "firing", "value": 6.25, "threshold": 5.0, "silence_id": "5f0a91c2", "comment": "node is synced anew",
    "author": "ann", "project": "main", "user": "ann", "usd": "0.001218000000", "units": "2320.000000000000",
    "reason": "empty_beyond_head", "otherwise": "empty", "budget": "100.000000000000", "spent": "41.500000000000",
    "spent_ratio": 0.415, "cycle_from": "2026-12-01T00:00:00.000Z", "cycle_to": "2027-01-01T00:00:00.000Z",
    "empty_at": None, "share_ratio": 0.42, "n_wasted": 0, "is_emptyish": False,
    "starts_at": "2026-12-01T10:00:00.000Z", "ends_at": "2026-12-01T12:00:00.000Z",
}  # fmt: skip

_BY_TYPE: Final[tuple[tuple[str, Any], ...]] = (
    ("Bool", True), ("UInt", 116), ("Int", 116), ("Float", 0.0123), ("Decimal", "0.001218000000"),
    ("DateTime", "2026-12-01T10:15:30.123Z"), ("Map", {"timeout": 3}), ("Array", []),
)  # fmt: skip


def row(question: Question, **members: Any) -> dict[str, Any]:
    """Return one row of a question as JSON has it; members win."""
    return {column.name: members.get(column.name, _value(column)) for column in question.columns}


def _value(column: ResultColumn) -> Any:
    """Return the value of a column's name where it is one of the column's type, else one of the type."""
    found, by_type = _BY_NAME.get(column.name), _of_type(column.type)
    is_fitting = type(found) is type(by_type) or (found is None and column.type.startswith("Nullable"))
    return found if column.name in _BY_NAME and is_fitting else by_type


def _of_type(kind: str) -> Any:
    plain = kind.removeprefix("Nullable(")
    return next((value for name, value in _BY_TYPE if plain.startswith(name)), "")


def collection(question: Question, *items: Mapping[str, Any]) -> dict[str, Any]:
    """Return an example of a whole answer."""
    said: dict[str, Any] = {"items": [dict(item) for item in items], "next_cursor": None}
    names = {parameter.name for parameter in question.parameters}
    if "from" in names:
        said["from"] = "2026-12-01T00:00:00.000Z"
    if "to" in names:
        said["to"] = "2026-12-02T00:00:00.000Z"
    if question.most_rows is not None:
        said["is_complete"] = True
    return said
