"""
A store with something of everything that pages show: the night, and beside it what a good night has not.

A second log brings a gap in a process's numbers, a dead letter, a call that failed just now, and calls of an upstream
that is gone, whose vendor has no price book; then settled verdicts and an odd one out, gauges of machines, a silence.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar

from gnomon.events import codec
from gnomon.events.contract import AnyEvent, Attempt, InternalAttempt
from ingest.batch import decode
from ingest.engine import Engine
from ingest.rows import rows_of
from ingest.settings import context
from ingest.sink import Sink
from tests.api.night import BASE, ETH, Night, ns, settings
from tests.api.pages.reading import Node, Site

T = TypeVar("T")
Rows = dict[str, dict[str, Any]]
"""What a row is called → column → its number as it is before anybody words it."""

NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""The hour of records whose time cannot be read."""
GAUGES = (
    ("log_written_events", "0", 51_234.0), ("log_consumed_events", "0", 51_200.0), ("log_dropped_events", "0", 0.0),
    ("log_unread_ratio", "0", 0.0123), ("clock_skew_seconds", "clickhouse", 0.0421),
)  # fmt: skip
"""Name, subject, value."""


class FullNight(Night):
    """The night, and what it has not."""

    def events(self) -> Iterator[AnyEvent]:
        """See `Night`; each is counted."""
        self.made_by_hour: Counter[datetime] = Counter()
        for event in super().events():
            self.made_by_hour[hour_of(event)] += 1
            yield event

    def store(self, engine: Engine) -> int:
        """See `Night`."""
        n = super().store(engine)
        gone = self._gone()
        self.made_by_hour.update([*map(hour_of, gone), NO_TIME])
        records = [*(codec.encode(event) for event in gone), b'{"no": "event"}']
        sink = Sink(engine, "1" * 32, "log", 0)
        sink.take_over()
        batch = decode(0, records)
        sink.store(rows_of(batch, context(settings()), ns(self.now) // 10**6 - 1000).rows)
        sink.progress(len(records))
        stamp = f"{self.now - timedelta(minutes=3):%Y-%m-%d %H:%M:%S}"
        rows = ", ".join(f"('{stamp}', '{name}', '{subject}', {value})" for name, subject, value in GAUGES)
        engine.command(f"INSERT INTO gnomon_core.gauges (at, name, subject, value) VALUES {rows}")
        ends = f"{self.now + timedelta(hours=2):%Y-%m-%d %H:%M:%S}"
        engine.command(
            "INSERT INTO gnomon_core.alert_silences"
            " (at, silence_id, rule, subject, starts_at, ends_at, comment, author)"
            f" VALUES ('{stamp}', 'calm', 'QuotaErrors', '*', '{stamp}', '{ends}', 'a quota is raised', 'ann')"
        )
        settled = _by_chance(5, "settled", "primary_right", "shadow_right")
        suspect = _by_chance(7, "suspect", "shadow", "primary")
        engine.command(
            f"ALTER TABLE gnomon_core.comparisons UPDATE settled = {settled}, suspect = {suspect}"
            " WHERE n_findings > 0 SETTINGS mutations_sync = 1"
        )
        return n + len(records)

    def _gone(self) -> list[AnyEvent]:
        """
        Return calls of a paid upstream that is not configured any more, and one of geth-2 that failed just now.

        Two numbers of their process never came.
        """
        found = [
            self._probe(number, minutes, upstream="gone-base", vendor="nobody", tier="fallback", network=BASE)
            for number, minutes in ((1, 90), (2, 88), (5, 80), (6, 60), (7, 6))
        ]
        return [*found, self._probe(8, 2, upstream="geth-2", outcome="timeout", error_class="timeout", network=ETH)]

    def _probe(self, number: int, minutes: int, *, network: str, **members: Any) -> AnyEvent:
        took = 1500 * number
        attempt = Attempt(
            kind="probe", method="eth_chainId", duration_us=took, request_bytes=80, response_bytes=60, **members
        )
        at = self.now - timedelta(minutes=minutes)
        event_id = f"00000000000000bb:{number}"
        return InternalAttempt(
            v=1, event_id=event_id, at=ns(at), network=network, attempt_id=f"g{number}", project="main", attempt=attempt
        )


def _by_chance(n: int, column: str, *words: str) -> str:
    """Return SQL for one of the words in one of n rows each, else what there was."""
    cases = [f"cityHash64(request_id) % {n} = {at}, '{word}'" for at, word in enumerate(words)]
    return f"multiIf({', '.join(cases)}, {column})"


def hour_of(event: AnyEvent) -> datetime:
    """Return the hour of an event's own time."""
    return datetime.fromtimestamp(event.at // 10**9, UTC).replace(minute=0, second=0)


@dataclass
class Full:
    """The dashboard over it, and the store itself."""

    site: Site
    store: Any
    """`analytics.store.Store`, as a reader."""
    kept: dict[Any, Any] = field(default_factory=dict)
    """What was asked for once: nothing is stored meanwhile."""

    @property
    def now(self) -> datetime:
        return self.site.night.now

    @property
    def to(self) -> str:
        """`now`, as an address has it."""
        return self.now.isoformat().replace("+00:00", "Z")

    @property
    def midnight(self) -> str:
        return f"{self.now:%Y-%m-%d}T00:00:00Z"

    @property
    def month(self) -> str:
        return f"{self.now:%Y-%m}-01T00:00:00Z"

    @property
    def made_by_hour(self) -> Counter[datetime]:
        """How many events were made, by the hour of their own time."""
        night = self.site.night
        assert isinstance(night, FullNight)
        return night.made_by_hour

    @cached_property
    def upstreams(self) -> list[str]:
        """Those of the configuration."""
        return [one.id for project in settings().projects for one in project.upstreams]

    @cached_property
    def tiers(self) -> dict[str, str]:
        """Upstream → tier."""
        return {one.id: one.tier for project in settings().projects for one in project.upstreams}

    @cached_property
    def networks(self) -> dict[str, str]:
        """Upstream → network."""
        return {one.id: one.network for project in settings().projects for one in project.upstreams}

    @cached_property
    def vendors(self) -> dict[str, str]:
        """Upstream → vendor."""
        return {one.id: one.vendor for project in settings().projects for one in project.upstreams}

    def page(self, address: str) -> Node:
        """Return a page."""
        return self._once(("page", address), lambda: self.site.page(address))

    def panel(self, address: str, name: str) -> Node:
        """Return a panel that is no part of its page."""
        return self._once(("panel", address, name), lambda: self.site.panel(address, name))

    def where(self, address: "Callable[[Full], str]") -> str:
        """Return an address that depends on what is stored."""
        return self._once(("where", address), lambda: address(self))

    def asked(self, question: str, **query: object) -> list[dict[str, Any]]:
        """Return what /v1 answers."""
        return self._once((question, *sorted(query.items())), lambda: self.site.asked(question, **query))

    def get(self, path: str, **query: object) -> Any:
        """Return what a route of /v1 answers that is no question's."""
        return self._once((path, *sorted(query.items())), lambda: self._get(path, query))

    def _get(self, path: str, query: Mapping[str, object]) -> Any:
        answer = self.site.api.get(path, **query)
        assert answer.status == 200, answer.body[:500]
        return answer.json()

    def sql(self, statement: str, **bound: object) -> list[dict[str, Any]]:
        """Return rows of a statement; `{to:DateTime64(3)}` is the end of the night."""
        given = {"to": f"{self.now:%Y-%m-%d %H:%M:%S}.000", **bound}
        used = {name: value for name, value in given.items() if f"{{{name}:" in statement}
        return self._once((statement, *sorted(used.items())), lambda: self._sql(statement, used))

    def _sql(self, statement: str, bound: Mapping[str, object]) -> list[dict[str, Any]]:
        found = self.store.query(statement, bound)
        return [dict(zip(found.names, row, strict=True)) for row in found.rows]

    def _once(self, key: Any, ask: Callable[[], T]) -> T:
        if key not in self.kept:
            self.kept[key] = ask()
        found: T = self.kept[key]
        return found

    def rows(self, statement: str, **bound: object) -> Rows:
        """Return rows of a statement by their name, its column `row`."""
        found = self.sql(statement, **bound)
        return {str(row["row"]): {name: value for name, value in row.items() if name != "row"} for row in found}
