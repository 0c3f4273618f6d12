"""Stored calls in groups of equal price: what they cost by other books, exact."""

import pytest

from bench.billing import AT, OWN_BOOK
from gnomon.cost.book import parse, shipped
from gnomon.cost.charge import Charge, Charger, PriceBooks, text_of
from ingest.repricing.calls import Calls, Keys, reprice, scaled

UNIT = 10**12


def charger(*books: str) -> Charger:
    return Charger(PriceBooks(shipped(), [parse(text, f"{n}.yaml") for n, text in enumerate(books)]))


def call(charged: Charge, **members: object) -> Calls:
    return Calls(
        **{  # type: ignore[arg-type]
            "hash": 1, "project": "main", "network": "evm:1", "upstream": "f1", "vendor": "acme", "account": "a",
            "method": "eth_call", "outcome": "result", "error_class": "", "status": 200, "n_batch": 1, "is_sent": True,
            "is_useless": False, "at_seconds": AT // 10**9, "behind": None, "n_bytes": 0, "n": 3, "charged": charged,
            "is_wasted": False, **members,
        }
    )  # fmt: skip


def test_a_dearer_book_is_a_difference() -> None:
    """13 units at 0.1234567: 0.0000016049371 a call, rounded each, three times."""
    (found,) = reprice([call(Charge(13 * UNIT, 333_333))], charger(OWN_BOOK))

    assert text_of(found.usd_after) == "0.000004814811"
    assert text_of(found.usd_change) == "0.000003814812"
    assert (found.units_after, found.n, found.n_changed, found.is_one) == (39 * UNIT, 3, 3, True)


def test_what_is_charged_as_the_books_say_is_none() -> None:
    """Nothing would change, and what is an estimate now and was none would."""
    same = call(Charge(13 * UNIT, 1_604_937))
    estimated = call(Charge(13 * UNIT, 1_604_937, True))

    assert not reprice([same], charger(OWN_BOOK))[0].is_one
    assert reprice([estimated], charger(OWN_BOOK))[0].n_changed == 3


def test_a_call_that_never_left_stays_free() -> None:
    """And one that failed after it left is charged as the book says now."""
    unsent = call(Charge(0, 0), outcome="timeout", is_sent=False)
    (found,) = reprice([unsent], charger(OWN_BOOK))
    (sent,) = reprice([call(Charge(0, 0), outcome="timeout")], charger(OWN_BOOK))

    assert not found.is_one
    assert sent.usd_after > 0


def test_a_vendor_that_gets_a_book_is_unpriced_no_more() -> None:
    """Before: three calls without a price; after: none. The other way round too."""
    (found,) = reprice([call(Charge(None, None))], charger(OWN_BOOK))
    (lost,) = reprice([call(Charge(UNIT, UNIT))], charger())

    assert (found.n_unpriced_before, found.n_unpriced_after) == (3, 0)
    assert (lost.n_unpriced_after, lost.usd_after, lost.usd_change) == (3, 0, -3 * UNIT)


def test_waste_follows_the_price() -> None:
    """What is of no use is wasted as soon as it costs something, and no longer when it is free."""
    useless = call(Charge(0, 0), is_useless=True)
    free = "{vendor: acme, usd_per_million_units: 0, default_units: 1}"

    assert useless.price(charger(OWN_BOOK))[1]
    assert useless.price(charger())[1]
    assert not useless.price(charger(free))[1]


def test_distance_date_and_size_are_looked_at_only_where_a_book_does() -> None:
    """The fewer differences, the fewer groups."""
    plain = Keys.of(Charger(PriceBooks({})))
    all_books = Keys.of(charger("{vendor: a, usd_per_million_units: 1, default_units: 1, valid_from: 2026-01-01}"))

    assert (plain.behind_slot, plain.date_slot, plain.n_bytes) == ("toUInt8(255)", "toUInt32(0)", "toUInt32(0)")
    assert "'chainstack'" in all_books.behind_slot
    assert "CAST([127], 'Array(UInt64)')" in all_books.behind_slot
    assert "1767225600" in all_books.date_slot
    assert all(vendor in all_books.n_bytes for vendor in ("'alchemy'", "'nodereal'", "response_bytes"))
    assert Keys.of(charger(), 1).hash != Keys.of(charger(), 0).hash


@pytest.mark.parametrize(
    ("text", "amount"), [("\\N", None), ("0", 0), ("0.000000000001", 1), ("-1.5", -1_500_000_000_000),
                         ("99999999999999999999999999.999999999999", 10**38 - 1)],
)  # fmt: skip
def test_an_amount_is_read_to_the_last_digit(text: str, amount: int | None) -> None:
    """As ClickHouse prints it; NULL is none."""
    assert scaled(text) == amount


def test_an_endpoint_that_is_said_to_have_an_archive_costs_more() -> None:
    """A configuration that says so later changes what was charged; nothing else of the call does."""
    stored = call(Charge(20 * UNIT, 10_880_000, True), vendor="getblock")
    books = PriceBooks(shipped())
    (same,) = reprice([stored], Charger(books))
    (found,) = reprice([stored], Charger(books, archives={("main", "f1"): True}))
    (other,) = reprice([stored], Charger(books, archives={("main", "f2"): True}))

    assert (same.is_one, other.is_one) == (False, False)
    assert (found.units_after, found.usd_after) == (3 * 40 * UNIT, 3 * 21_760_000)
