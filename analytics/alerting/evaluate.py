"""
Firing: a pure function of a rule, the rows of now, what was held before, and the time.

                 crossed, `for` 0
    (nothing) ───────────────────────────────► firing ──not crossed, or no row──► (nothing)   `resolved`
        │  crossed                                ▲
        └───────────► pending ──for `for`─────────┘
                        └──not crossed, or no row──► (nothing)                                `inactive`

A value is crossed when it lies beyond the threshold; the threshold itself, NULL and NaN are not. Several rows of one
subject count as their worst. `since` is when the crossing that goes on now was first seen.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from analytics.alerting.rules import Rule

Phase = Literal["pending", "firing"]
ChangeState = Literal["pending", "firing", "resolved", "inactive"]
"""`pending` and `inactive` are kept so that a restart goes on where it was; nobody is told of them."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One row of a rule's statement."""

    subject: str
    value: float | None
    labels: Mapping[str, str] = field(default_factory=dict)
    """Further columns, as texts."""


@dataclass(frozen=True, slots=True)
class Held:
    """A subject whose value lies beyond the threshold."""

    phase: Phase
    since: datetime
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """What has become of one rule and subject, and when."""

    at: datetime
    rule: str
    state: ChangeState
    subject: str
    value: float
    threshold: float
    severity: str
    since: datetime
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """The same for every change of this rule and subject."""
        return fingerprint(self.rule, self.subject)


def fingerprint(rule: str, subject: str) -> str:
    """Return 32 hex digits that name a rule and a subject, for ever."""
    return hashlib.blake2b(f"{rule}\0{subject}".encode(), digest_size=16).hexdigest()


def evaluate(
    rule: Rule, readings: Iterable[Reading], held: Mapping[str, Held], now: datetime
) -> tuple[dict[str, Held], list[Change]]:
    """
    Return what is held now, by subject, and what has changed.

    Args:
        rule: the rule.
        readings: its rows of now.
        held: what the last evaluation gave.
        now: aware UTC, not before the last evaluation's.
    """
    rows: dict[str, Reading] = {}
    for reading in readings:
        known = rows.get(reading.subject)
        if known is None or _is_worse(rule, reading.value, known.value):
            rows[reading.subject] = reading
    after: dict[str, Held] = {}
    changes: list[Change] = []

    def change(state: ChangeState, subject: str, was: Held) -> None:
        changes.append(
            Change(now, rule.name, state, subject, was.value, rule.threshold, rule.severity, was.since, was.labels)
        )

    for subject in sorted({*rows, *held}):
        row, before = rows.get(subject), held.get(subject)
        value = None if row is None else row.value
        if row is not None and value is not None and rule.is_crossed(value):
            since = now if before is None else before.since
            is_firing = (before is not None and before.phase == "firing") or now - since >= rule.lasts
            new = Held("firing" if is_firing else "pending", since, value, row.labels)
            after[subject] = new
            if before is None or before.phase != new.phase:
                change(new.phase, subject, new)
        elif before is not None:
            # A subject that is gone is told with the last value that was seen.
            last = before.value if row is None or value is None or math.isnan(value) else value
            labels = before.labels if row is None else row.labels
            ended = Held(before.phase, before.since, last, labels)
            change("resolved" if before.phase == "firing" else "inactive", subject, ended)
    return after, changes


def _is_worse(rule: Rule, value: float | None, than: float | None) -> bool:
    if value is None or math.isnan(value):
        return False
    if than is None or math.isnan(than):
        return True
    return value > than if rule.is_above else value < than


def readings(names: Iterable[str], rows: Iterable[Iterable[object]]) -> list[Reading]:
    """
    Return the rows of a statement as readings.

    Raises:
        ValueError: there is no column `value`, or it holds no numbers.
    """
    columns = list(names)
    if "value" not in columns:
        raise ValueError("the statement gives no column `value`")
    found = []
    for row in rows:
        cells = dict(zip(columns, row, strict=True))
        value = cells.pop("value")
        subject = cells.pop("subject", "")
        if value is not None:
            try:
                value = float(value)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                raise ValueError(f"the column `value` holds {value!r}, which is no number") from None
        labels = {name: _text(cell) for name, cell in cells.items()}
        found.append(Reading("" if subject is None else str(subject), value, labels))
    return found


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else str(value)
