"""
Rows for the tests of the API: a day of events of every kind, through the processors, and alerts beside them.

Everything lies in the day before `NOW`; pairs share instants, so that pages must tell them by more than their time.
"""

from datetime import UTC, datetime, timedelta

from analytics.store import Store
from gnomon.config.model import Settings
from gnomon.events.contract import Answer, AnyEvent, Attempt
from ingest.batch import decode
from ingest.rows import rows_of
from ingest.settings import context
from ingest.sink import Sink
from tests.ingest.engine_process import EngineProcess
from tests.ingest.events import AT, breaker, head, poll, primary, records, reorg, shadow

NOW = datetime.fromtimestamp(AT / 10**9, UTC) + timedelta(hours=2)
DAY = {
    "from_": (NOW - timedelta(days=1)).isoformat().replace("+00:00", "Z"),
    "to": NOW.isoformat().replace("+00:00", "Z"),
}
"""The range that holds all of it, as a query has it."""
N_PAIRS = 120

PAID = Attempt(
    upstream="f1", vendor="alchemy", account="acme", tier="fallback", cause="empty_at_head", duration_us=2000
)
MISSED = Attempt(upstream="p1", outcome="empty", is_empty=True, duration_us=1000)
HEDGED = Attempt(
    upstream="f1", vendor="alchemy", account="acme", tier="fallback", kind="hedge", cause="hedge", outcome="cancelled",
    is_cancelled=True, duration_us=500, request_bytes=100,
)  # fmt: skip
UNPRICED = Attempt(upstream="f2", vendor="nobody", tier="fallback", cause="quota")


def events() -> list[AnyEvent]:
    """Return them; a function of numbers alone."""
    found: list[AnyEvent] = []
    for number in range(1, N_PAIRS + 1):
        at = AT + number // 4 * 10**9  # four at an instant
        method = ("eth_getBlockByNumber", "eth_call", "eth_getLogs")[number % 3]
        attempts: tuple[Attempt, ...] = (Attempt(upstream="p1", duration_us=1500 + number, status=200),)
        match number % 8:
            case 1:
                attempts = (MISSED, PAID)
            case 3:
                attempts = (Attempt(upstream="p1", duration_us=9000), HEDGED)
            case 5:
                attempts = (Attempt(upstream="p1", outcome="timeout", duration_us=9000), UNPRICED)
        last = attempts[-1]
        user = "ann" if number % 2 else "bob"
        found.append(
            primary(number, at=at, method=method, attempts=attempts, user=user, upstream=last.upstream, tier=last.tier,
                    cause=last.cause)
        )  # fmt: skip
        match number % 6:
            case 0:
                found.append(
                    shadow(number, at=at, method=method, body=b'{"a":1,"b":[1,2,3]}', other=b'{"a":2,"b":[1,9,8]}')
                )
            case 1:
                late = Attempt(upstream="s1", tier="shadow", kind="shadow", outcome="timeout", duration_us=10_000)
                found.append(shadow(number, at=at, method=method, shadow=Answer(), attempt=late))
            case 2:
                found.append(
                    shadow(number, at=at, method=method, body=b'{"a":1}', other=b'{"a":2}', ignore_fields=("a",))
                )
            case _:
                found.append(shadow(number, at=at, method=method))
    found += [poll(1000 + n, at=AT + n * 10**9) for n in range(10)]
    found += [head(90 + n, at=AT + n * 10**9) for n in range(20)]
    return [*found, reorg(1, at=AT), breaker(9, at=AT)]


ALERTS = [
    (rule, state, subject, NOW - timedelta(hours=hours), value)
    for rule, subject, value, changes in (
        ("FallbackSpend", "acme", 6.25, ((9, "firing"), (8, "resolved"), (3, "firing"))),
        ("HeadLag", "evm:1/p1", 12.0, ((5, "firing"),)),
        ("PaidShare", "evm:1", 0.4, ((5, "firing"), (4, "resolved"))),
        ("Gone", "x", 1.0, ((5, "firing"),)),
    )
    for hours, state in changes
]
"""Rule, state, subject, when, value."""


def fill(process: EngineProcess) -> None:
    """Store everything."""
    raw = [*records(events()), b"poison"]
    sink = Sink(process.connect(), "0" * 32, "log", 0)
    sink.take_over()
    sink.store(rows_of(decode(0, raw), context(Settings()), AT // 10**6).rows)
    sink.progress(len(raw))
    user, password = process.credentials()
    with Store.connect(process.url, user, password, database="gnomon_core") as store:
        names = ("rule", "state", "subject", "at", "value", "threshold", "severity", "since", "fingerprint")
        rows = [(*alert, 5.0, "page", alert[3], alert[0]) for alert in ALERTS]
        store.insert("gnomon_core.alerts", names, rows)
