"""Charges: exact, by outcome, network, age of the block and date; unpriced is not zero."""

from decimal import Decimal
from fractions import Fraction
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.cost.book import PUSH, Book, parse, shipped
from gnomon.cost.charge import FREE, UNPRICED, Charge, Charger, PriceBooks, round_amount
from gnomon.cost.errors import PriceBookError

UNIT = 10**12
NOW = 1_780_000_000


def book(more: str = "", price: str = "10", vendor: str = "acme", default: str = "3") -> Book:
    return parse(
        f"vendor: {vendor}\nusd_per_million_units: {price}\ndefault_units: {default}\n{more}", f"{vendor}.yaml"
    )


def charge(
    own: Book | None,
    vendor: str = "acme",
    network: str = "evm:1",
    method: str = "eth_call",
    outcome: str = "result",
    error_class: str = "",
    status: int = 200,
    n_batch: int = 1,
    blocks_behind: int | None = None,
    at: int = NOW,
) -> Charge:
    books = PriceBooks(shipped(), [own] if own else [])
    return Charger(books).charge(vendor, network, method, outcome, error_class, status, n_batch, at, blocks_behind)


@pytest.mark.parametrize(
    ("vendor", "method", "units", "usd"),
    [
        ("alchemy", "eth_getBlockByNumber", "20", "0.0000105"),
        ("alchemy", "eth_subscribe", "10", "0.00000525"),
        ("alchemy", "eth_chainId", "0", "0"),
        ("alchemy", "eth_getLogs", "60", "0.0000315"),
        ("drpc", "eth_call", "20", "0.000006"),
        ("infura", "eth_getLogs", "255", "0.000028305"),
        ("infura", "net_version", "5", "0.000000555"),
        ("ankr", "anything_at_all", "200", "0.00002"),
        ("publicnode", "eth_call", "1", "0"),
    ],
)
def test_shipped_books_charge_as_the_price_lists_say(vendor: str, method: str, units: str, usd: str) -> None:
    """facts/pricing.md's table, call by call."""
    found = charge(None, vendor=vendor, method=method)

    # What the price is derived from is a plan that is used up.
    assert Charge(round_amount(Decimal(units)), round_amount(Decimal(usd)), vendor == "infura") == found


@pytest.mark.parametrize(
    ("vendor", "network", "units", "is_estimate"),
    [
        pytest.param("alchemy", "evm:1", "49.36", False, id="0.04 a byte"),
        pytest.param("nodereal", "evm:56", "49.36", False, id="0.04 a byte, not about 40"),
        pytest.param("infura", "evm:1", "50", True, id="newHeads, at a derived price"),
        pytest.param("drpc", "evm:1", "20", False, id="each push"),
        pytest.param("ankr", "evm:1", "100", False, id="half of a call"),
        pytest.param("chainstack", "evm:1", "1", False, id="each push one"),
        pytest.param("onfinality", "evm:1", "1", True, id="each response one, on Ethereum more"),
        pytest.param("blockdaemon", "evm:1", "10", False, id="an event"),
        pytest.param("quicknode", "evm:1", "20", False, id="the network's base"),
        pytest.param("quicknode", "evm:100", "30", False, id="the network's base, Gnosis"),
        pytest.param("getblock", "evm:1", "20", True, id="nothing found: as a call, an estimate"),
        pytest.param("tenderly", "evm:1", None, False, id="nothing found, no default: unpriced"),
    ],
)
def test_a_pushed_head_costs_what_the_vendor_asks(
    vendor: str, network: str, units: str | None, is_estimate: bool
) -> None:
    """By the message, by the byte, or as a call; a head of 1,234 bytes."""
    charger = Charger(PriceBooks(shipped()))
    size = 1234 if charger.needs_bytes(vendor, PUSH) else 0
    found = charger.charge(vendor, network, PUSH, "result", "", 0, 1, NOW, n_bytes=size)

    assert (None if units is None else round_amount(Decimal(units)), is_estimate) == (found.units, found.is_estimate)


@pytest.mark.parametrize(
    ("vendor", "units"), [("blockdaemon", 2), ("infura", 5), ("ankr", 200), ("chainstack", 1), ("nodereal", 10)]
)
def test_subscribing_costs_what_the_vendor_asks(vendor: str, units: int) -> None:
    """Blockdaemon charges the connection beside the subscription; each of ours has its own."""
    assert charge(None, vendor=vendor, method="eth_subscribe").units == units * UNIT


def test_the_size_matters_only_where_it_is_paid_for() -> None:
    """Of pushes, at vendors that charge by the byte, unless a book names the push itself."""
    own = book("billing: {ws_notification_units_per_byte: 0.04}")
    named = book("methods: {eth_subscription: 3}\nbilling: {ws_notification_units_per_byte: 0.04}", vendor="named")
    charger = Charger(PriceBooks(shipped(), [own, named]))

    assert charger.needs_bytes("acme", PUSH)
    assert not any(
        charger.needs_bytes(*of) for of in (("acme", "eth_call"), ("named", PUSH), ("drpc", PUSH), ("x", PUSH))
    )
    assert charger.charge("named", "evm:1", PUSH, "result", "", 0, 1, NOW).units == 3 * UNIT


def test_what_a_list_does_not_say_is_an_estimate() -> None:
    """A method without a published default, a plan's price by its units, a batch that nobody says how to bill."""
    assert charge(None, vendor="alchemy", method="eth_somethingNew").is_estimate
    assert not charge(None, vendor="drpc", method="eth_somethingNew").is_estimate
    assert charge(None, vendor="getblock").is_estimate
    assert charge(None, vendor="drpc", n_batch=2).is_estimate
    assert not charge(None, vendor="alchemy", n_batch=2).is_estimate
    assert not charge(None, vendor="infura", outcome="error", error_class="rate_limited", status=429).is_estimate


@pytest.mark.parametrize(("status", "units"), [(200, 0), (400, 0), (403, 0), (401, 26)])
def test_alchemy_gives_refused_access_away(status: int, units: int) -> None:
    """-32600 for a list of addresses, an inactive app or an origin is free, and so is 403; 401 is another 4xx."""
    found = charge(None, vendor="alchemy", outcome="error", error_class="unauthorized", status=status)

    assert (found.units, found.is_estimate) == (units * UNIT, False)


def test_an_own_node_costs_nothing_whatever_it_answers() -> None:
    """No vendor is an own node, in any tier."""
    assert charge(None, vendor="", outcome="timeout") == FREE
    assert charge(None, vendor="self-hosted") == FREE


def test_a_vendor_without_a_book_is_unpriced() -> None:
    """Neither units nor money are made up."""
    assert charge(None, vendor="nobody") == UNPRICED


def test_a_book_without_price_counts_units_only() -> None:
    """Units are known, money is not."""
    assert charge(None, vendor="tenderly") == Charge(4 * UNIT, None)
    assert charge(None, vendor="tenderly", method="eth_getLogs") == Charge(None, None)


BILLING = """
methods: {eth_call: 8}
billing:
  error_units: {method_not_found: 1, http_429: 0, http_403: default, other_http_4xx: 5, http_5xx: method}
  null_result: 2
  execution_revert: 4
  timeout: 6
  cancelled: unknown
"""


@pytest.mark.parametrize(
    ("outcome", "error_class", "status", "units", "is_estimate"),
    [
        ("result", "", 200, 8, False),
        ("empty", "", 200, 2, False),
        ("verdict", "revert", 200, 4, False),
        ("verdict", "halt", 200, 4, False),
        ("verdict", "invalid_params", 200, 8, False),
        ("timeout", "timeout", 0, 6, False),
        ("transport", "transport", 0, 6, False),
        ("cancelled", "cancelled", 0, 8, True),
        ("error", "method_not_found", 200, 1, False),
        ("error", "rate_limited", 200, 0, False),
        ("error", "rate_limited", 429, 0, False),
        ("error", "status", 403, 3, False),
        ("error", "unauthorized", 401, 5, False),
        ("error", "status", 404, 5, False),
        ("error", "status", 500, 8, False),
        ("error", "status", 599, 8, False),
        ("error", "internal", 200, 8, True),
        ("error", "parse", 200, 8, True),
        ("error", "status", 302, 8, True),
    ],
)
def test_outcomes_are_billed_by_the_vendors_rules(
    outcome: str, error_class: str, status: int, units: int, is_estimate: bool
) -> None:
    """A rule that the vendor does not publish means the method's units, marked as an estimate."""
    found = charge(book(BILLING), outcome=outcome, error_class=error_class, status=status)

    assert Charge(units * UNIT, units * 10 * 10**6, is_estimate) == found


def test_any_failed_stands_for_failures_not_named() -> None:
    """dRPC: failed requests are free."""
    assert charge(None, vendor="drpc", outcome="error", error_class="internal") == Charge(0, 0)
    assert charge(None, vendor="infura", outcome="error", error_class="quota", status=402) == Charge(0, 0)


@pytest.mark.parametrize(
    ("network", "units", "is_estimate"),
    [
        ("evm:1", 20, False),
        ("evm:100", 30, False),
        ("evm:250", 40, False),
        ("evm:424242", 20, True),
        ("hive", 20, True),
    ],
)
def test_a_network_has_the_vendors_factor(network: str, units: int, is_estimate: bool) -> None:
    """QuickNode: base 20, Gnosis 30, Fantom 40; a network that the list does not name is an estimate."""
    found = charge(None, vendor="quicknode", network=network)

    assert (units * UNIT, is_estimate) == (found.units, found.is_estimate)


@pytest.mark.parametrize(
    ("behind", "method", "units", "is_estimate"),
    [
        (0, "eth_call", 1, False),
        (126, "eth_call", 1, False),
        (127, "eth_call", 2, False),
        (10**9, "eth_call", 2, False),
        (None, "eth_call", 1, True),
        (500, "eth_chainId", 1, False),
        (None, "eth_chainId", 1, False),
        (500, "debug_traceCall", 2, False),
    ],
)
def test_an_old_block_costs_more_where_the_vendor_says_so(
    behind: int | None, method: str, units: int, is_estimate: bool
) -> None:
    """Chainstack: twice from 127 blocks behind the tip on, for the methods it names; unknown distance: an estimate."""
    found = charge(None, vendor="chainstack", method=method, blocks_behind=behind)

    assert Charge(units * UNIT, units * 15 * 10**6, is_estimate) == found


def test_a_batch_is_charged_per_call_unless_the_vendor_says_per_batch() -> None:
    """Per batch, each call carries its share."""
    assert charge(book("billing: {batch: per_call}"), n_batch=3).units == 3 * UNIT
    assert charge(book("billing: {batch: per_batch}"), n_batch=3).units == UNIT
    assert charge(book("billing: {batch: per_batch}", default="1"), n_batch=3).units == 333_333_333_333


@pytest.mark.parametrize(
    ("price", "units", "usd"),
    [
        ("0.0000005", "1", 0),
        ("0.0000015", "1", 2),
        ("0.0000025", "1", 2),
        ("0.00000050000001", "1", 1),
        ("0.525", "0.04", 21_000),
    ],
)
def test_money_is_rounded_half_even_to_twelve_places(price: str, units: str, usd: int) -> None:
    """Ties go to the even digit; nothing else is lost."""
    assert usd == charge(book(price=price, default=units)).usd


@given(st.integers(0, 10**9), st.integers(0, 10**7), st.integers(0, 6), st.integers(0, 6))
def test_a_charge_is_the_exact_product_to_half_a_quantum(
    units: int, price: int, units_scale: int, price_scale: int
) -> None:
    """No float ever touches money."""
    exact_units = Fraction(units, 10**units_scale)
    exact = exact_units * Fraction(price, 10**price_scale) / 1_000_000

    found = charge(
        book(price=str(Decimal(price).scaleb(-price_scale)), default=str(Decimal(units).scaleb(-units_scale)))
    )

    assert found.usd is not None
    assert abs(Fraction(found.usd, 10**12) - exact) <= Fraction(1, 2 * 10**12)
    assert Fraction(found.units or 0, 10**12) == exact_units


def test_the_users_book_replaces_the_shipped_one() -> None:
    """One vendor, one set of books."""
    assert charge(book(vendor="alchemy", price="1"), vendor="alchemy").usd == 3 * 10**6


JANUARY, FEBRUARY, MARCH = 1_767_225_600, 1_769_904_000, 1_772_323_200


def test_a_book_holds_for_its_dates() -> None:
    """From inclusive, to exclusive; outside all spans the call is unpriced."""
    first = book("valid_from: 2026-01-01\nvalid_to: 2026-02-01", price="1")
    second = book("valid_from: 2026-02-01\nvalid_to: 2026-03-01", price="2")
    charger = Charger(PriceBooks(shipped(), [second, first]))

    found = [
        charger.charge("acme", "evm:1", "m", "result", "", 200, 1, at).usd
        for at in (JANUARY - 1, JANUARY, FEBRUARY - 1, FEBRUARY, MARCH - 1, MARCH)
    ]

    assert found == [None, 3 * 10**6, 3 * 10**6, 6 * 10**6, 6 * 10**6, None]


def test_two_books_of_a_vendor_for_one_day_are_refused() -> None:
    """Which price held would be a guess."""
    with pytest.raises(PriceBookError, match="valid at the same time"):
        PriceBooks(shipped(), [book("valid_from: 2026-01-01"), book("valid_from: 2026-02-01")])


def test_configured_units_win_over_the_book() -> None:
    """creditUnits of an upstream: the method's own, then `*`, then the book."""
    units = {("main", "f1"): {"eth_call": Decimal("0.5"), "*": Decimal(9)}}
    charger = Charger(PriceBooks(shipped(), [book()]), units)

    def of(upstream: str, method: str) -> int | None:
        own = charger.own_units("main", upstream, method)
        return charger.charge("acme", "evm:1", method, "result", "", 200, 1, NOW, None, own).units

    assert [of("f1", "eth_call"), of("f1", "x"), of("f2", "eth_call")] == [UNIT // 2, 9 * UNIT, 3 * UNIT]


@pytest.mark.parametrize(
    ("upstream", "method", "units", "is_estimate"),
    [
        pytest.param("archive", "eth_call", 40, False, id="each call twice"),
        pytest.param("archive", "trace_replayTransaction", 160, False, id="on top of the method's own"),
        pytest.param("full", "eth_call", 20, False, id="an endpoint that says it has none"),
        pytest.param("silent", "eth_call", 20, True, id="nobody says: once, an estimate"),
    ],
)
def test_getblock_charges_archive_by_the_endpoint(upstream: str, method: str, units: int, is_estimate: bool) -> None:
    """How old the block is does not matter, whether the configuration calls the upstream an archive does."""
    own = (resources.files("gnomon.cost") / "books" / "getblock.yaml").read_text(encoding="utf-8")
    sure = own.replace("derived_plan_average", "payg").replace("default_units_assumed: true", "")
    archives = {("main", "archive"): True, ("main", "full"): False}
    charger = Charger(PriceBooks(shipped(), [parse(sure, "getblock.yaml")]), archives=archives)
    archive = charger.has_archive("main", upstream)

    for behind in (None, 0, 10_000_000):
        found = charger.charge("getblock", "evm:1", method, "result", "", 200, 1, NOW, behind, has_archive=archive)
        assert (found.units, found.is_estimate) == (units * UNIT, is_estimate)


def test_an_archive_costs_no_more_where_the_block_decides() -> None:
    """Chainstack charges by the distance; others charge archive data like any."""
    charger = Charger(PriceBooks(shipped()), archives={("main", "a"): True})

    def of(vendor: str, behind: int) -> int | None:
        archive = charger.has_archive("main", "a")
        return charger.charge(
            vendor, "evm:1", "eth_getBalance", "result", "", 200, 1, NOW, behind, has_archive=archive
        ).units

    assert [of("chainstack", 0), of("chainstack", 127)] == [UNIT, 2 * UNIT]
    assert of("alchemy", 0) == of("alchemy", 10_000_000)
