"""Price books: what is read, and every fault at once."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from gnomon.cost.book import parse, shipped
from gnomon.cost.errors import PriceBookError

MINIMAL = "vendor: acme\nusd_per_million_units: 1\ndefault_units: 2\n"


def test_every_shipped_book_has_sources_and_is_readable() -> None:
    """The books carry the facts they were made from."""
    books = shipped()

    assert {"alchemy", "chainstack", "drpc", "infura", "quicknode", "self-hosted", "tenderly"} <= set(books)
    assert all(book.as_of for book in books.values())


def test_a_price_is_read_from_its_own_text() -> None:
    """0.525 is a decimal, not the float next to it."""
    assert Decimal("0.525") == shipped()["alchemy"].usd_per_million_units


def test_null_is_not_known_and_not_zero() -> None:
    """A vendor without a public price is unpriced; a free one costs 0."""
    assert shipped()["tenderly"].usd_per_million_units is None
    assert shipped()["publicnode"].usd_per_million_units == 0


@pytest.mark.parametrize(
    ("method", "units"),
    [
        ("debug_traceBlock", 40),
        ("debug_anything", 7),
        ("debug_traceCall", 5),
        ("debug_trace", 5),
        ("debug_tracer", 5),
        ("eth_call", 2),
        ("debug", 2),
        ("", 2),
    ],
)
def test_an_exact_name_wins_then_the_longest_prefix(method: str, units: int) -> None:
    """Exact, then prefix by length, then the default."""
    book = parse(f"{MINIMAL}methods: {{debug_traceBlock: 40, 'debug_*': 7, 'debug_trace*': 5}}", "t")

    found = book.method_units(method)
    assert found is not None
    assert units == found.amount


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("usd_per_million_units: 1\ndefault_units: 1", ["vendor: want the vendor's name"]),
        ("vendor: a", ["usd_per_million_units: missing", "default_units: missing"]),
        (MINIMAL + "methods: {eth_call: cheap}", ["methods.eth_call: want a number"]),
        (MINIMAL + "methods: {eth_call: -1}", ["methods.eth_call: want a number"]),
        (MINIMAL + "methods: {eth_call: .inf}", ["methods.eth_call: want a number"]),
        (MINIMAL + "methods: {eth_call: null}", ["methods.eth_call: want units"]),
        (MINIMAL + "methods: {eth_call: true}", ["methods.eth_call: want a number"]),
        (MINIMAL + "methods: [eth_call]", ["methods: want a mapping"]),
        (MINIMAL + "billing: {timeout: perhaps}", ["billing.timeout: want a number of units or one of"]),
        (MINIMAL + "billing: {error_units: {http_429: null}}", ["billing.error_units.http_429: want"]),
        (MINIMAL + "billing: {batch: sometimes}", ["billing.batch: want per_call"]),
        (MINIMAL + "billing: {ws_notification_units: many}", ["billing.ws_notification_units: want a number"]),
        (MINIMAL + "billing: {ws_notification_units_per_byte: -1}", ["billing.ws_notification_units_per_byte: want"]),
        (
            MINIMAL + "billing: {ws_notification_units_per_event: {newHeads: x}}",
            ["billing.ws_notification_units_per_event.newHeads: want a number"],
        ),
        (MINIMAL + "billing: {ws_connection_open_units: x}", ["billing.ws_connection_open_units: want a number"]),
        (MINIMAL + "default_units_assumed: 1", ["default_units_assumed: want true or false"]),
        (MINIMAL + "archive_after_blocks: soon", ["archive_after_blocks: want a number of blocks"]),
        (MINIMAL + "valid_from: someday", ["valid_from: want a date"]),
        ("- a", ["a book is a mapping"]),
        ("a: [", ["no YAML"]),
        (MINIMAL + "methods: {a: x}\nbilling: {batch: y}\nvalid_to: z", ["methods.a", "billing.batch", "valid_to"]),
    ],
)
def test_every_fault_is_named_with_its_place(text: str, faults: list[str]) -> None:
    """All problems of a book are told together."""
    with pytest.raises(PriceBookError) as caught:
        parse(text, "acme.yaml")

    assert len(faults) == len(caught.value.problems)
    for fault in faults:
        assert any(problem.startswith(fault) for problem in caught.value.problems)


def test_dates_are_days_or_instants_in_utc() -> None:
    """A day begins at 00:00 UTC; an instant keeps its own zone."""
    book = parse(MINIMAL + "valid_from: 2026-01-01\nvalid_to: '2026-02-01T00:00:00+02:00'", "t")

    assert datetime(2026, 1, 1, tzinfo=UTC) == book.valid_from
    assert datetime(2026, 1, 31, 22, tzinfo=UTC) == book.valid_to
