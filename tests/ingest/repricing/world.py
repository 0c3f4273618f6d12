"""
A store with calls of many kinds over several days, and what it must hold: the same events charged by other books.

The oracle is the processors' own steps run on the events anew; it shares no code with `ingest.repricing`.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from bench.billing import AT, OWN_BOOK, World
from gnomon.cost.book import parse, shipped
from gnomon.cost.charge import Charger, PriceBooks, text_of
from gnomon.events import codec
from gnomon.events.contract import Attempt, InternalAttempt
from ingest.batch import decode
from ingest.comparisons import Policies
from ingest.engine import Engine
from ingest.rows import Context, rows_of
from ingest.sink import Sink
from ingest.tables import ATTEMPTS, HOUR_MS, column_index

DAYS = 2
BEGIN = datetime.fromtimestamp(AT / 10**9, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
END = BEGIN + timedelta(days=DAYS)
KEYS = (("aa" * 16, "log", 0), ("bb" * 16, "log", 1))
BATCH = 400
_DIMENSIONS = ("project", "network", "vendor", "account", "upstream", "tier", "kind", "cause", "method")

OLD = (OWN_BOOK,)
MIDDAY = BEGIN + timedelta(days=1, hours=12)
NEW = (
    # alchemy dearer and by other units, chainstack by another distance, infura dated, acme unknown
    "{vendor: alchemy, usd_per_million_units: 0.77, default_units: 21, methods: {eth_call: 5, eth_getLogs: 0}, "
    "billing: {batch: per_batch, null_result: 0, timeout: method, ws_notification_units_per_byte: 0.07}}",
    "{vendor: chainstack, usd_per_million_units: 20, default_units: 1, archive_multiplier: 3, archive_after_blocks: 1}",
    f"{{vendor: infura, usd_per_million_units: 1, default_units: 7, valid_to: '{MIDDAY:%Y-%m-%dT%H:%M:%SZ}'}}",
    f"{{vendor: infura, usd_per_million_units: 3, default_units: 7, valid_from: '{MIDDAY:%Y-%m-%dT%H:%M:%SZ}'}}",
)


def charger(books: Sequence[str]) -> Charger:
    return Charger(PriceBooks(shipped(), [parse(text, f"{n}.yaml") for n, text in enumerate(books)]))


def context(books: Sequence[str]) -> Context:
    return Context(charger(books), Policies({}))


def events(n: int, seed: int) -> list[bytes]:
    """Return encoded events of so many attempts, pushes among them, spread over the days."""
    chance = random.Random(seed)
    made: list[bytes] = []
    for number, event in enumerate(World(seed).events(n)):
        at = int(BEGIN.timestamp() * 10**9) + chance.randrange(DAYS * 86_400 * 10**9)
        own = codec.encode(msgspec.structs.replace(event, at=at))
        made.append(own.replace(b"00000000000000aa:", f"{seed:016x}:".encode()))
        if number % 20 == 0:
            push = Attempt(
                upstream="ws", vendor="alchemy", account="alchemy", tier="fallback", kind="subscription",
                method="eth_subscription", request_bytes=90, response_bytes=chance.choice((500, 640, 1234)),
                outcome="result",
            )  # fmt: skip
            event_id = f"{seed:015x}f:{number}"
            made.append(
                codec.encode(
                    InternalAttempt(
                        v=event.v, event_id=event_id, at=at, network="evm:1", attempt_id=event_id, project="main",
                        attempt=push, params=msgspec.Raw(b"[]"), latest=None,
                    )
                )
            )  # fmt: skip
    return made


def fill(engine: Engine, key: tuple[str, str, int], records: Sequence[bytes], books: Sequence[str]) -> Sink:
    """Store the records of a log from where its tables are, charged by the books; return its sink."""
    sink = Sink(engine, *key)
    sink.take_over()
    store(sink, records, books)
    return sink


def store(sink: Sink, records: Sequence[bytes], books: Sequence[str], until: int = -1) -> None:
    """Store records up to an offset."""
    end = len(records) if until < 0 else until
    for first in range(sink.next, end, BATCH):
        sink.store(rows_of(decode(first, records[first : min(first + BATCH, end)]), context(books), 0).rows)
    sink.progress()


Charges = dict[tuple[str, int, str], tuple[str, ...]]
Sums = dict[tuple[str, ...], tuple[Any, ...]]


def charges_of(records: Sequence[bytes], books: Sequence[str]) -> Charges:
    """Return what each call of the records costs by the books."""
    found: Charges = {}
    event, idx, upstream, units, usd, estimate, wasted = (
        column_index(ATTEMPTS, n) for n in ("event_id", "idx", "upstream", "units", "usd", "is_estimate", "is_wasted")
    )
    for row in rows_of(decode(0, records), context(books), 0).rows.tables["attempts"]:
        found[row[event], row[idx], row[upstream]] = (
            _text(row[units]), _text(row[usd]), str(bool(row[estimate])).lower(), str(bool(row[wasted])).lower(),
        )  # fmt: skip
    return found


def stored_charges(engine: Engine) -> Charges:
    rows = engine.rows("SELECT event_id, idx, upstream, units, usd, is_estimate, is_wasted FROM gnomon_core.attempts")
    assert len({(row[0], row[1], row[2]) for row in rows}) == len(rows), "a call stands there twice"
    return {
        (row[0], int(row[1]), row[2]): (_padded(row[3]), _padded(row[4]), row[5], row[6]) for row in rows
    }  # fmt: skip


def sums_of(records: Sequence[bytes], books: Sequence[str]) -> Sums:
    """Return what the hourly view must say: per group calls, waste, unpriced, units and money."""
    places = [column_index(ATTEMPTS, name) for name in _DIMENSIONS]
    units, usd, wasted = (column_index(ATTEMPTS, n) for n in ("units", "usd", "is_wasted"))
    groups: dict[tuple[str, ...], list[Any]] = defaultdict(list)
    for row in rows_of(decode(0, records), context(books), 0).rows.tables["attempts"]:
        hour = datetime.fromtimestamp((row[0] - row[0] % HOUR_MS) / 1000, UTC)
        key = (f"{hour:%Y-%m-%d %H:%M:%S}.000", *(str(row[place]) for place in places))
        groups[key].append(row)
    return {
        key: (
            len(rows), sum(bool(row[wasted]) for row in rows), sum(row[usd] is None for row in rows),
            _total([row[units] for row in rows]), _total([row[usd] for row in rows]),
        )
        for key, rows in groups.items()
    }  # fmt: skip


def stored_sums(engine: Engine) -> Sums:
    rows = engine.rows(f"SELECT hour, {', '.join(_DIMENSIONS)}, n, n_wasted, n_unpriced, units, usd "
                       "FROM gnomon.spend_hourly")  # fmt: skip
    return {tuple(r[:10]): (int(r[10]), int(r[11]), int(r[12]), _padded(r[13]), _padded(r[14])) for r in rows}


def _total(amounts: list[int | None]) -> str:
    known = [amount for amount in amounts if amount is not None]
    return text_of(sum(known)) if known else "\\N"


def _text(amount: int | None) -> str:
    return "\\N" if amount is None else text_of(amount)


def _padded(text: str) -> str:
    return text if text == "\\N" else f"{Decimal(text):.12f}"
