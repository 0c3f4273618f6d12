"""
The bill against the upstreams' own meters: simulated traffic, equal to the unit and to the last decimal.

    python -m bench billing [--attempts N] [--seed N]

The proxy's own flights (proxy.core.flight) decide who is asked; a simulated network answers, refuses, times out or is
cut off; the events go through the codec and the steps of the processors. Beside that each upstream counts what arrives
and charges it by a table of its own, written here from the vendors' documents in whole numbers and fractions: the two
share no code and no price book.

In it: failovers, escapes, retries, hedges and their cancelled losers, timeouts, refused connections, calls that never
left, 429, 402, 403, 5xx, unknown methods, nulls, reverts, batches, blocks near and far, head polls, chain checks,
probes and a metered shadow; books of three vendors, and a user's with a price that does not fit 12 places.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from msgspec import Raw

from gnomon.cost.book import parse, shipped
from gnomon.cost.charge import Charger, PriceBooks
from gnomon.events import codec
from gnomon.events.contract import (
    VERSION,
    Answer,
    AnyEvent,
    Attempt,
    Head,
    Heads,
    InternalAttempt,
    PrimaryResponse,
    ShadowResponse,
)
from ingest.batch import decode
from ingest.comparisons import Policies
from ingest.rows import Context, rows_of
from ingest.tables import ATTEMPTS, column_index
from proxy.core.flight import ANSWERED, FAIL, FAILED, MISSED, PAUSE, REFUSED, SERVE, SERVE_MISS, TRY, Command, Flight

LATEST = 20_000_000
NETWORK = "evm:1"
AT = 1_796_000_000 * 10**9
OWN_BOOK = """
vendor: acme
usd_per_million_units: 0.1234567
default_units: 7
methods: {eth_call: 13, eth_getLogs: 75, "eth_get*": 21}
billing: {batch: per_call, error_units: {http_429: 0, other_http_4xx: default, http_5xx: 3}, null_result: 1,
          execution_revert: method, timeout: method, cancelled: 0.5}
"""

ALCHEMY = {"eth_chainId": 0, "eth_blockNumber": 10, "eth_call": 26, "eth_getLogs": 60, "eth_getBlockByNumber": 20,
           "eth_getTransactionReceipt": 20, "eth_getBalance": 20, "eth_sendRawTransaction": 40}  # fmt: skip
INFURA = {"eth_chainId": 5, "eth_getLogs": 255}
ARCHIVE = frozenset({"eth_call", "eth_getBalance", "eth_getBlockByNumber", "eth_getLogs"})


@dataclass(frozen=True, slots=True)
class Call:
    """What arrives at an upstream, and what becomes of it there."""

    method: str
    behind: int | None
    """Blocks behind the head; None = it names no block."""
    end: str
    """result, null, revert, timeout, cancelled, 429, 402, 403, 500, unknown_method."""


def alchemy(call: Call) -> Fraction:
    """429, 403 and unknown methods are free; other errors cost the method."""
    return Fraction(0 if call.end in ("429", "403", "unknown_method") else ALCHEMY[call.method])


def infura(call: Call) -> Fraction:
    """429, 402 and 5xx are free; other 4xx cost 5, an unknown method 160; 80 for what the table does not name."""
    if call.end in ("429", "402", "500"):
        return Fraction(0)
    if call.end == "403":
        return Fraction(5)
    return Fraction(160 if call.end == "unknown_method" else INFURA.get(call.method, 80))


def chainstack(call: Call) -> Fraction:
    """One, or two when one of the named methods asks for a block 127 or more behind the tip; errors are not told."""
    return Fraction(2 if call.method in ARCHIVE and (call.behind or 0) >= 127 else 1)


def acme(call: Call) -> Fraction:
    """The user's own book, worked out by hand."""
    own = {"eth_call": 13, "eth_getLogs": 75}
    method = own.get(call.method, 21 if call.method.startswith("eth_get") else 7)
    other: dict[str, Fraction] = {"429": Fraction(0), "402": Fraction(7), "403": Fraction(7), "500": Fraction(3),
                                  "null": Fraction(1), "cancelled": Fraction(1, 2)}  # fmt: skip
    return other.get(call.end, Fraction(method))


VENDORS: dict[str, tuple[Callable[[Call], Fraction], Fraction]] = {
    "": (lambda call: Fraction(0), Fraction(0)),
    "alchemy": (alchemy, Fraction(525, 1000)),
    "infura": (infura, Fraction(111, 1000)),
    "chainstack": (chainstack, Fraction(15)),
    "acme": (acme, Fraction(1234567, 10**7)),
}
"""Vendor → units of a call, USD of a million units."""


@dataclass(slots=True)
class Meter:
    """At an upstream: what arrived, and its price; amounts in 10^-12."""

    vendor: str
    n: int = 0
    units: Fraction = Fraction(0)
    usd: int = 0
    ends: Counter[str] = field(default_factory=Counter)

    def count(self, call: Call) -> None:
        units_of, price = VENDORS[self.vendor]
        units = units_of(call)
        self.n += 1
        self.units += units
        self.usd += round(units * price * 10**6)  # of 10^-12; rounds half-even, as Python does
        self.ends[call.end] += 1


@dataclass(frozen=True, slots=True)
class Upstream:
    id: str
    vendor: str
    tier: str
    is_bad: bool = False


PRIMARIES = (Upstream("p1", "", "primary", True), Upstream("p2", "", "primary", True))
FALLBACKS = tuple(Upstream(f"f-{vendor}", vendor, "fallback") for vendor in ("alchemy", "infura", "chainstack"))
SHADOW = Upstream("s-acme", "acme", "shadow")
EVERYBODY = (*PRIMARIES, *FALLBACKS, SHADOW)

ENDS = ("result", "null", "revert", "timeout", "refused", "unsent", "429", "402", "403", "500", "unknown_method")
GOOD = (70, 6, 4, 5, 2, 1, 4, 1, 2, 4, 1)
BAD = (25, 15, 4, 15, 10, 3, 8, 2, 6, 10, 2)
_OUTCOMES: dict[str, tuple[str, str, int, int]] = {
    "result": ("result", "", 200, ANSWERED),
    "null": ("empty", "", 200, MISSED),
    "revert": ("verdict", "revert", 200, ANSWERED),
    "timeout": ("timeout", "timeout", 0, FAILED),
    "refused": ("transport", "transport", 0, REFUSED),
    "unsent": ("timeout", "timeout", 0, FAILED),
    "429": ("error", "rate_limited", 429, REFUSED),
    "402": ("error", "quota", 402, REFUSED),
    "403": ("error", "unauthorized", 403, REFUSED),
    "500": ("error", "status", 500, FAILED),
    "unknown_method": ("error", "method_not_found", 200, REFUSED),
    "cancelled": ("cancelled", "cancelled", 0, FAILED),
    "cancelled_unsent": ("cancelled", "cancelled", 0, FAILED),
}
_NEVER_ARRIVED = frozenset({"refused", "unsent", "cancelled_unsent"})
METHODS = ("eth_call", "eth_getLogs", "eth_getBlockByNumber", "eth_getTransactionReceipt", "eth_getBalance")
HEADS = Heads(network=Head(latest=LATEST, finalized=LATEST - 64))


class World:
    """Traffic, and what the meters saw of it."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.meters = {upstream.id: Meter(upstream.vendor) for upstream in EVERYBODY}
        self.n_attempts = 0
        self._n_events = 0

    def events(self, n_attempts: int) -> list[AnyEvent]:
        """Return the events of some requests and internal calls: so many attempts, or a few more."""
        events: list[AnyEvent] = []
        until = self.n_attempts + n_attempts
        while self.n_attempts < until:
            events += self._request()
            if self._random.random() < 0.15:
                events.append(self._internal())
        return events

    def _request(self) -> list[AnyEvent]:
        choose = self._random
        method = choose.choice(METHODS) if choose.random() > 0.02 else "eth_sendRawTransaction"
        params, behind = self._params(method)
        is_write = method == "eth_sendRawTransaction"
        flight: Flight[Upstream] = Flight(
            choose.sample(PRIMARIES, 2), choose.sample(FALLBACKS, 3), rounds=choose.choice((1, 1, 2)),
            hedges=choose.choice((0, 1)), is_write=is_write,
        )  # fmt: skip
        attempts: list[Attempt] = []
        live: list[Command[Upstream]] = []
        command = flight.start()
        while True:
            if command.op == TRY:
                live.append(command)
                if choose.random() < 0.1 and (hedged := flight.hedge()).op == TRY:
                    live.append(hedged)
            elif command.op == PAUSE:
                command = flight.resume()
                continue
            elif command.op in (SERVE, SERVE_MISS, FAIL):
                break
            first = live.pop(choose.randrange(len(live)))
            end = choose.choices(ENDS, BAD if first.upstream and first.upstream.is_bad else GOOD)[0]
            attempts.append(self._attempt(first, method, behind, end))
            _, error_class, _, became = _OUTCOMES[end]
            command = flight.finished(became, error_class)
        for loser in live:
            attempts.append(
                self._attempt(loser, method, behind, "cancelled" if choose.random() < 0.9 else "cancelled_unsent")
            )
        served = command.op != FAIL
        event_id, request_id = self._event_id(), f"r{self._n_events}"
        primary = PrimaryResponse(
            v=VERSION, event_id=event_id, at=AT, network=NETWORK, request_id=request_id, project="main", method=method,
            params=Raw(params), duration_us=9_000, outcome="result" if served else "error", attempts=tuple(attempts),
            heads=HEADS, shadows={SHADOW.id: "write" if is_write else "mirrored"},
        )  # fmt: skip
        if is_write or choose.random() < 0.5:
            return [primary]
        end = choose.choices((*ENDS, "cancelled"), (*GOOD, 3))[0]
        shadow = ShadowResponse(
            v=VERSION, event_id=self._event_id(), at=AT, network=NETWORK, request_id=request_id, project="main",
            method=method, params=Raw(params), shadow_upstream=SHADOW.id, shadow=Answer(),
            attempt=self._attempt(Command(TRY, SHADOW, "shadow"), method, behind, end), heads=HEADS,
            primary_heads=HEADS,
        )  # fmt: skip
        return [primary, shadow]

    def _internal(self) -> AnyEvent:
        choose = self._random
        upstream = choose.choice(EVERYBODY)
        kind = choose.choice(("head_poll", "head_poll", "chain_check", "probe"))
        params, behind, method = b"[]", None, {"head_poll": "eth_blockNumber", "chain_check": "eth_chainId"}.get(kind)
        if method is None:
            method = choose.choice(METHODS)
            params, behind = self._params(method)
        end = choose.choices(ENDS, GOOD)[0]
        event_id = self._event_id()
        return InternalAttempt(
            v=VERSION, event_id=event_id, at=AT, network=NETWORK, attempt_id=event_id, project="main",
            attempt=self._attempt(Command(TRY, upstream, kind), method, behind, end), params=Raw(params), latest=LATEST,
        )  # fmt: skip

    def _params(self, method: str) -> tuple[bytes, int | None]:
        """Return parameters, and how far behind the head they ask."""
        behind = self._random.choice((0, 1, 126, 127, 128, 5_000_000))
        block = b'"latest"' if behind == 0 else b'"%s"' % hex(LATEST - behind).encode()
        if method == "eth_getBlockByNumber":
            return b"[%s,false]" % block, behind
        if method == "eth_getLogs":
            return b'[{"fromBlock":%s,"toBlock":"latest"}]' % block, behind
        if method in ("eth_getTransactionReceipt", "eth_sendRawTransaction"):
            return b'["0x%064x"]' % self._random.getrandbits(200), None
        return b'[{"to":"0x%040x"},%s]' % (self._random.getrandbits(100), block), behind

    def _attempt(self, command: Command[Upstream], method: str, behind: int | None, end: str) -> Attempt:
        upstream = command.upstream
        assert upstream is not None
        outcome, error_class, status, _ = _OUTCOMES[end]
        self.n_attempts += 1
        if end not in _NEVER_ARRIVED:
            self.meters[upstream.id].count(Call(method, behind, end))
        return Attempt(
            upstream=upstream.id, vendor=upstream.vendor, account=upstream.vendor, tier=upstream.tier,  # type: ignore[arg-type]
            kind=command.kind, cause=command.cause, method=method, duration_us=1_000,  # type: ignore[arg-type]
            request_bytes=0 if end in _NEVER_ARRIVED else 180, status=status, outcome=outcome,  # type: ignore[arg-type]
            error_class=error_class, is_empty=end == "null", is_cancelled=outcome == "cancelled",  # type: ignore[arg-type]
            n_batch=self._random.choice((1, 1, 1, 2, 10)),
        )  # fmt: skip

    def _event_id(self) -> str:
        self._n_events += 1
        return f"00000000000000aa:{self._n_events}"


@dataclass(slots=True)
class Bill:
    """What the processors charge one upstream; amounts in 10^-12."""

    n: int = 0
    n_free: int = 0
    """Calls that never left."""
    units: int = 0
    usd: int = 0


_UPSTREAM, _UNITS, _USD, _BYTES = (column_index(ATTEMPTS, n) for n in ("upstream", "units", "usd", "request_bytes"))


def bills(events: list[AnyEvent], context: Context, into: dict[str, Bill]) -> None:
    """Add the charges of some events, from their bytes on."""
    rows = rows_of(decode(0, [codec.encode(event) for event in events]), context, AT // 10**6).rows
    for row in rows.tables["attempts"]:
        bill = into[row[_UPSTREAM]]
        if row[_BYTES]:
            bill.n += 1
        else:
            bill.n_free += 1
        bill.units += row[_UNITS]
        bill.usd += row[_USD]


def context() -> Context:
    return Context(Charger(PriceBooks(shipped(), [parse(OWN_BOOK, "acme.yaml")])), Policies({}))


def run(n_attempts: int, seed: int) -> tuple[World, dict[str, Bill]]:
    """Simulate; return the world with its meters, and the bills."""
    world, prices = World(seed), context()
    found = {upstream.id: Bill() for upstream in EVERYBODY}
    while world.n_attempts < n_attempts:
        bills(world.events(min(20_000, n_attempts - world.n_attempts)), prices, found)
    return world, found


def differences(world: World, found: dict[str, Bill]) -> list[str]:
    """Return where a bill is not what the meter says, to the last decimal."""
    return [
        f"{name}: meter {meter.n} calls, {meter.units} units, {meter.usd} e-12 USD; bill {found[name]}"
        for name, meter in world.meters.items()
        if (found[name].n, Fraction(found[name].units, 10**12), found[name].usd) != (meter.n, meter.units, meter.usd)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    started = time.perf_counter()
    world, found = run(args.attempts, args.seed)
    seconds = time.perf_counter() - started
    print(f"{world.n_attempts} attempts in {seconds:.1f} s, seed {args.seed}")
    for name, bill in found.items():
        units = Decimal(bill.units).scaleb(-12).normalize()
        ends = ", ".join(f"{end} {n}" for end, n in world.meters[name].ends.most_common())
        print(f"  {name:14} {bill.n:8} calls + {bill.n_free:6} that never left, {units:f} units, "
              f"{Decimal(bill.usd).scaleb(-12):f} USD   ({ends})")  # fmt: skip
    wrong = differences(world, found)
    print("\n".join(wrong) or "each bill is what the upstream's own meter says, to the unit and the last decimal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
