"""Asks a rule's statement as a reader: windows and accounts are bound, nothing is formatted into the text."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from analytics import accounts, reading
from analytics.alerting.evaluate import Held, Reading, evaluate, readings
from analytics.alerting.rules import Rule
from analytics.store import Store, StoreAway
from gnomon.config.model import Account, ClickHouseSettings

MAX_STEPS = 500
"""A dry run looks at most so often within `for`."""


class Asker:
    """A connection for each thread that asks."""

    def __init__(self, settings: ClickHouseSettings, known: Sequence[Account]) -> None:
        """
        Args:
            settings: where ClickHouse is.
            known: the configured accounts.
        """
        self._settings = settings
        self._accounts = known
        self._local = threading.local()
        self._checked: set[str] = set()

    def ask(self, rule: Rule, at: datetime) -> list[Reading]:
        """
        Return the rows of a rule, its window ending at an instant.

        Raises:
            StoreError: ClickHouse refuses or is away.
            ValueError: the rows are none of a rule, or the statement is more than a reader may run.
        """
        store = self._store()
        try:
            if rule.sql not in self._checked:
                try:
                    reading.check(store, rule.sql)
                except reading.SqlNotAllowed as error:
                    raise ValueError(str(error)) from error
                self._checked.add(rule.sql)
            result = store.query(rule.sql, self.bound(rule, at))
        except StoreAway:
            self._local.store = None
            store.close()
            raise
        return readings(result.names, result.rows)

    def bound(self, rule: Rule, at: datetime) -> dict[str, object]:
        """Return what the statement binds, by name."""
        names = rule.placeholders
        values: dict[str, object] = {"from": _time(at - rule.window), "to": _time(at)}
        values.update(accounts.bindings(self._accounts, at))
        return {name: value for name, value in values.items() if name in names}

    def _store(self) -> Store:
        store: Store | None = getattr(self._local, "store", None)
        if store is None:
            store = self._local.store = reading.connect(self._settings)
        return store


def dry_run(rule: Rule, asker: Asker, at: datetime) -> tuple[dict[str, Held], list[Reading]]:
    """
    Return what a rule would hold at an instant had it been asked as it should through its `for`, and its rows of then.

    Raises:
        StoreError, ValueError: as `Asker.ask`.
    """
    step = max(rule.period, rule.lasts / MAX_STEPS, timedelta(milliseconds=1))
    n_steps = -(-rule.lasts // step)
    held: dict[str, Held] = {}
    rows: list[Reading] = []
    for back in range(n_steps, -1, -1):
        now = at - min(step * back, rule.lasts)
        rows = asker.ask(rule, now)
        held, _ = evaluate(rule, rows, held, now)
    return held, rows


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
