"""The statement that changes the prices of a day, and the prices that it looks up."""

from gnomon.cost.charge import Charge, Charger, PriceBooks
from ingest.engine import Mark
from ingest.repricing.calls import Keys
from ingest.repricing.changing import PRICES_COLUMNS, columns, statement

MARK = Mark("repricing", "prices", 0, 77)
KEYS = Keys.of(Charger(PriceBooks({})))


def test_it_changes_calls_for_the_newest_owner_only() -> None:
    """The calls that are asked for, and no epoch but the owner's."""
    text = statement(KEYS, "upstream = 'x'", 5, MARK)

    assert "WHERE upstream = 'x'" in text
    assert "repricing = 5\n" in text
    assert "WHERE log_id = 'repricing' AND topic = 'prices' AND part = 0) = 77" in text


def test_prices_are_columns() -> None:
    """What is unpriced is paid for as long as nobody knows the price; what costs 0 is not."""
    found = columns({2**64 - 1: Charge(10**12, None, True), 1: Charge(0, 0), 2: Charge(None, None), 3: Charge(1, 2)})

    assert len(found) == len(PRICES_COLUMNS)
    assert found == [
        [2**64 - 1, 1, 2, 3], [True] * 4, [10**12, 0, None, 1], [None, 0, None, 2], [True, False, False, False],
        [True, False, True, True],
    ]  # fmt: skip
