"""
What has become of alerts, in ClickHouse: changes, deliveries, silences. The state after a restart is what is there.

A change to be told is written as its deliveries first and its row of `alerts` last: that row is what makes it count, so
a process killed between the two tells nobody twice of what it never decided.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from analytics.alerting.evaluate import Change, Held, Phase
from analytics.alerting.messages import Message
from analytics.alerting.silences import Silence
from analytics.store import Store

KEPT: timedelta = timedelta(days=7)
"""What could not be delivered for so long is given up."""

_ALERTS = ("at", "rule", "state", "subject", "value", "threshold", "severity", "since", "delivered", "fingerprint",
           "labels")  # fmt: skip
_DELIVERIES = ("at", "changed_at", "fingerprint", "rule", "state", "receiver", "is_delivered", "n_tries", "error",
               "body")  # fmt: skip

_HELD = """
SELECT rule, subject, argMax(state, at), argMax(since, at), argMax(value, at), argMax(labels, at), max(at)
FROM gnomon_core.alerts
GROUP BY rule, subject
HAVING argMax(state, at) IN ('pending', 'firing')
"""
_TOLD = """
SELECT fingerprint, argMax(receivers, changed_at)
FROM
(
    SELECT fingerprint, changed_at, any(state) AS state, groupUniqArray(receiver) AS receivers
    FROM gnomon_core.alert_deliveries
    GROUP BY fingerprint, changed_at
)
GROUP BY fingerprint
HAVING argMax(state, changed_at) = 'firing'
"""
_UNDELIVERED = """
SELECT d.changed_at, d.receiver, d.body
FROM
(
    SELECT changed_at, fingerprint, state, receiver, anyIf(body, body != '') AS body
    FROM gnomon_core.alert_deliveries
    WHERE changed_at >= {from:DateTime64(3)}
    GROUP BY changed_at, fingerprint, state, receiver
    HAVING max(is_delivered) = 0
) AS d
INNER JOIN (SELECT at, fingerprint, state FROM gnomon_core.alerts WHERE at >= {from:DateTime64(3)}) AS a
    ON a.at = d.changed_at AND a.fingerprint = d.fingerprint AND a.state = d.state
ORDER BY d.changed_at, d.receiver
"""
_SILENCES = """
SELECT silence_id, rule, subject, starts_at, ends_at, comment, author
FROM gnomon.alert_silences
WHERE ends_at > {now:DateTime64(3)}
"""


@dataclass(frozen=True, slots=True)
class Parcel:
    """One message for one receiver."""

    changed_at: datetime
    receiver: str
    message: Message


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a try to deliver."""

    at: datetime
    parcel: Parcel
    is_delivered: bool
    n_tries: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class Past:
    """What a former life has left."""

    held: Mapping[str, Mapping[str, Held]] = field(default_factory=dict)
    """Rule → subject → what is held."""
    changed_at: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    """(rule, subject) → when its state last changed."""
    told: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Fingerprint → who was told that it fires."""
    undelivered: Sequence[Parcel] = ()


class History:
    """Reads and writes with the writer's rights; one thread."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def past(self, now: datetime) -> Past:
        """Return what was written by earlier lives."""
        held: dict[str, dict[str, Held]] = {}
        changed_at: dict[tuple[str, str], datetime] = {}
        for rule, subject, state, since, value, labels, at in self._store.rows(_HELD):
            phase: Phase = "firing" if state == "firing" else "pending"
            held.setdefault(rule, {})[subject] = Held(phase, since, value, dict(labels))
            changed_at[rule, subject] = at
        told = {fingerprint: tuple(sorted(receivers)) for fingerprint, receivers in self._store.rows(_TOLD)}
        rows = self._store.rows(_UNDELIVERED, {"from": _time(now - KEPT)})
        undelivered = [Parcel(at, receiver, message_of(body)) for at, receiver, body in rows]
        return Past(held, changed_at, told, undelivered)

    def silences(self, now: datetime) -> list[Silence]:
        """Return the silences that have not ended."""
        return [Silence(*row) for row in self._store.rows(_SILENCES, {"now": _time(now)})]

    def silence(self, silence: Silence, now: datetime) -> None:
        """Write a silence down, or its new end."""
        names = ("at", "silence_id", "rule", "subject", "starts_at", "ends_at", "comment", "author")
        row = (now, silence.id, silence.rule, silence.subject, silence.starts_at, silence.ends_at, silence.comment,
               silence.author)  # fmt: skip
        self._store.insert("gnomon_core.alert_silences", names, [row])

    def write(self, changes: Sequence[Change], parcels: Sequence[Parcel]) -> None:
        """Write changes down, and what is to be told of them."""
        if parcels:
            rows = [_delivery(p.changed_at, p, False, 0, "", body_of(p.message)) for p in parcels]
            self._store.insert("gnomon_core.alert_deliveries", _DELIVERIES, rows)
        if changes:
            self._store.insert("gnomon_core.alerts", _ALERTS, [_alert(change) for change in changes])

    def report(self, reports: Iterable[Report]) -> None:
        """Write down what became of deliveries."""
        rows = [_delivery(r.at, r.parcel, r.is_delivered, r.n_tries, r.error, "") for r in reports]
        if rows:
            self._store.insert("gnomon_core.alert_deliveries", _DELIVERIES, rows)

    def gauges(self, rows: Sequence[tuple[datetime, str, str, float]]) -> None:
        """Write samples down."""
        if rows:
            self._store.insert("gnomon_core.gauges", ("at", "name", "subject", "value"), rows)

    def clock(self) -> datetime:
        """Return ClickHouse's time."""
        at: Any = self._store.rows("SELECT now64(3, 'UTC')")[0][0]
        assert isinstance(at, datetime)
        return at


def _alert(c: Change) -> tuple[object, ...]:
    return (c.at, c.rule, c.state, c.subject, c.value, c.threshold, c.severity, c.since, False, c.fingerprint,
            dict(c.labels))  # fmt: skip


def _delivery(at: datetime, p: Parcel, done: bool, n_tries: int, error: str, body: str) -> tuple[object, ...]:
    m = p.message
    return (at, p.changed_at, m.fingerprint, m.rule, m.state, p.receiver, done, n_tries, error, body)


def body_of(message: Message) -> str:
    """Return a message as it is kept."""
    return json.dumps({**asdict(message), "since": message.since.isoformat(), "at": message.at.isoformat()})


def message_of(body: str) -> Message:
    """Return the message that `body_of` has kept."""
    members = json.loads(body)
    members["since"], members["at"] = (datetime.fromisoformat(members[name]) for name in ("since", "at"))
    return Message(**members)


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
