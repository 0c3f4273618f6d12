"""The bill is what the upstreams' own meters say, to the unit and to the last decimal."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.billing import NETWORK, VENDORS, Bill, Call, World, context, differences, run
from gnomon.cost.charge import round_amount


@pytest.mark.parametrize("seed", [1, 2])
def test_bills_equal_meters(seed: int) -> None:
    """Over failovers, hedges, retries, cut-off calls, errors, batches, polls, probes, shadows, old blocks."""
    world, found = run(15_000, seed)

    assert differences(world, found) == []
    assert sum(bill.n + bill.n_free for bill in found.values()) == world.n_attempts
    assert all(bill.n_free for bill in found.values())
    assert all(len(meter.ends) >= 9 for meter in world.meters.values())
    assert {name for name, bill in found.items() if bill.usd == 0} == {"p1", "p2"}


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_bills_equal_meters_over_a_million() -> None:
    """The long form; `python -m bench billing` prints it."""
    assert differences(*run(1_000_000, 3)) == []


def test_a_difference_is_seen() -> None:
    """One call more or less, or the last decimal: the comparison can fail."""
    for spoil in ("n", "units", "usd"):
        world, found = run(500, 1)
        bill: Bill = found["f-infura"]
        setattr(bill, spoil, getattr(bill, spoil) + 1)

        assert [line.partition(":")[0] for line in differences(world, found)] == ["f-infura"]


@given(st.sampled_from([v for v in VENDORS if v]), st.sampled_from(["eth_call", "eth_getLogs", "eth_getBalance"]),
       st.none() | st.integers(0, 1000))  # fmt: skip
def test_one_call_costs_the_same_on_both_sides(vendor: str, method: str, behind: int | None) -> None:
    """By the price book, and by the meter's own table; rounding of each call, not of the sum."""
    units_of, price = VENDORS[vendor]
    units = units_of(Call(method, behind, "result"))
    charge = context().charger.charge(vendor, NETWORK, method, "result", "", 200, 1, 1_796_000_000, behind or 0)

    assert charge.units == round_amount(Decimal(units.numerator) / units.denominator)
    assert charge.usd == round(units * price * 10**6)


def test_the_world_is_the_same_for_a_seed() -> None:
    """A failure can be seen again."""
    assert World(7).events(200) == World(7).events(200)
