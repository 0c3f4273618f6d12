"""
The statement that gives the calls of some days their new prices.

The prices stand in a table of their own (`PRICES_TABLE`), by hash. The change is a mutation (ALTER … UPDATE): each part
of the table of calls changes as a whole, inserts go on beside it, and the engine finishes it after a restart. It
changes a call only where its charge is another one, so that running it twice is running it once, and it changes nothing
for anybody but the newest owner of the fence: one that arrives late, from a killed process, finds a greater epoch and
does nothing. Hashes are salted with the run, so that the prices of one are none to another.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gnomon.cost.charge import Charge
from ingest.engine import Mark
from ingest.native import Column, bools, nullable_amounts, numbers
from ingest.repricing.calls import Keys
from ingest.tables import DATABASE

PRICES_TABLE = "repricing_prices"
PRICES_DDL = f"""CREATE TABLE IF NOT EXISTS {DATABASE}.{PRICES_TABLE}
(
    `hash` UInt64,
    `is_known` Bool,
    `units` Nullable(Decimal(38, 12)),
    `usd` Nullable(Decimal(38, 12)),
    `is_estimate` Bool,
    `is_paid` Bool
)
ENGINE = Join(ANY, LEFT, hash)"""
"""Made by a run and never dropped: a change that was asked for and not done yet looks into it."""
PRICES_COLUMNS = (
    Column("hash", "UInt64", numbers("Q")),
    Column("is_known", "Bool", bools),
    Column("units", "Nullable(Decimal(38, 12))", nullable_amounts),
    Column("usd", "Nullable(Decimal(38, 12))", nullable_amounts),
    Column("is_estimate", "Bool", bools),
    Column("is_paid", "Bool", bools),
)


def columns(prices: Mapping[int, Charge]) -> list[Sequence[Any]]:
    """Return prices by hash as the columns of `PRICES_COLUMNS`."""
    charges = prices.values()
    return [
        list(prices), [True] * len(prices), [c.units for c in charges], [c.usd for c in charges],
        [c.is_estimate for c in charges], [c.usd != 0 for c in charges],
    ]  # fmt: skip


def statement(keys: Keys, where: str, run: int, mark: Mark) -> str:
    """
    Return the statement.

    Args:
        keys: what the hashes in the table of prices are made of.
        where: which calls.
        run: the number of this run, written beside the price.
        mark: who must be the newest owner for anything to change.
    """

    def price(column: str) -> str:
        return f"joinGet('{DATABASE}.{PRICES_TABLE}', '{column}', {keys.hash})"

    is_wasted = f"(is_useless AND {price('is_paid')})"
    fence = f"(SELECT max(epoch) FROM {DATABASE}.sink_epochs WHERE {mark.where}) = {mark.epoch}"
    return f"""
ALTER TABLE {DATABASE}.attempts UPDATE
    units = {price("units")},
    usd = {price("usd")},
    is_estimate = {price("is_estimate")},
    is_wasted = {is_wasted},
    former_prices = arrayPushBack(former_prices, (repricing, units, usd)),
    repricing = {run}
WHERE {where}
    AND {price("is_known")}
    AND NOT (units IS NOT DISTINCT FROM {price("units")} AND usd IS NOT DISTINCT FROM {price("usd")}
        AND is_estimate = {price("is_estimate")} AND is_wasted = {is_wasted})
    AND {fence}
SETTINGS mutations_sync = 0, allow_nondeterministic_mutations = 1
"""
