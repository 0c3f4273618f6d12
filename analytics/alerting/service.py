"""
The alert service: asks each rule when it is due, writes down what has changed, hands it on.

    due rule ──a thread of a few──► rows ──evaluate──► changes ──► history (ClickHouse) ──► a queue for each receiver
                                                                          ▲                          │
                                                                          └──── what became of it ───┘

One thread decides; a slow statement keeps one of the others busy and delays no other rule. While ClickHouse is away
nothing is evaluated, what is held stays held, and `AlertsBlind` tells by its own counting. What could not be written
down is told all the same and written later.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from analytics.alerting.delivery import Delivery, stop_all
from analytics.alerting.evaluate import Change, Held, Reading, evaluate, fingerprint
from analytics.alerting.history import Parcel, Past, Report
from analytics.alerting.messages import Message, message
from analytics.alerting.rules import Rule
from analytics.alerting.silences import Silence, is_silenced
from analytics.migrate import SchemaBehind
from analytics.store import StoreAway, StoreError
from gnomon.config.receivers import Receiver
from gnomon.errors import GnomonError

log = logging.getLogger("gnomon.alerts")

BLIND: Final = "AlertsBlind"
"""The rule about ourselves: for how long a rule could not be asked."""
BLIND_EVERY_SECONDS: Final = 5.0
N_THREADS: Final = 3
POLL_SECONDS: Final = 0.2
SILENCES_SECONDS: Final = 5.0
GAUGES_SECONDS: Final = 10.0
STOP_SECONDS: Final = 2.0
"""For the statements that run when the service stops; what a later one would say is asked by the next life."""
MAX_UNWRITTEN: Final = 10_000

Ask = Callable[[Rule, datetime], Sequence[Reading]]
"""Return a rule's rows, its window ending at an instant; several threads call it. Raises StoreError, ValueError."""
Sample = tuple[str, str, float]


class Reports:
    """What became of deliveries, from their threads; it wakes the one that writes it down."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._wake = threading.Event()

    def put(self, report: Report) -> None:
        self._queue.put(report)
        self._wake.set()

    def wait(self, seconds: float) -> None:
        """Return when there is one, or after so long."""
        self._wake.wait(seconds)

    def take(self) -> list[Report]:
        """Return what has come since the last time."""
        self._wake.clear()
        return [self._queue.get_nowait() for _ in range(self._queue.qsize())]


OUT_OF_REACH: Final = (StoreError, SchemaBehind)
"""Of the history, for now: ClickHouse is away, or was made anew and `gnomon migrate` is at work on it."""


class Keeper(Protocol):
    """What the service needs of `analytics.alerting.history.History`."""

    def past(self, now: datetime) -> Past: ...
    def silences(self, now: datetime) -> list[Silence]: ...
    def write(self, changes: Sequence[Change], parcels: Sequence[Parcel]) -> None: ...
    def report(self, reports: Sequence[Report]) -> None: ...
    def gauges(self, rows: Sequence[tuple[datetime, str, str, float]]) -> None: ...
    def clock(self) -> datetime: ...


class Service:
    """One life of the alert service."""

    def __init__(
        self,
        rules: Sequence[Rule],
        ask: Ask,
        keeper: Callable[[], Keeper],
        deliveries: Sequence[Delivery],
        reports: Reports,
        sample: Callable[[Keeper], Sequence[Sample]] = lambda keeper: (),
        *,
        deliver: Callable[[Receiver], Delivery] | None = None,
        between_rounds: Callable[[], None] = lambda: None,
        is_leading: Callable[[], bool] = lambda: True,
        may_act: Callable[[], bool] = lambda: True,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            rules: all of them.
            ask: asks one.
            keeper: opens the history anew; raises StoreError.
            deliveries: the receivers.
            reports: what they put there is written down.
            sample: what to write to `gauges`.
            deliver: makes what tells a receiver, for `reconfigure`.
            between_rounds: called by the thread that goes round, after `stir`; it may `reconfigure`.
            is_leading: whether this service asks the rules, and not another one over the same store.
            may_act: whether no other can be doing so; where not, what was asked is dropped.
            wall, clock: UTC and monotonic time.
        """
        self._rules = {rule.name: rule for rule in rules}
        self._ask = ask
        self._open = keeper
        self._keeper: Keeper | None = None
        self._deliveries = {delivery.receiver.name: delivery for delivery in deliveries}
        self._reports = reports
        self._sample = sample
        self._deliver = deliver or (lambda receiver: Delivery(receiver, reports.put))
        self._between_rounds = between_rounds
        self._is_leading = is_leading
        self._may_act = may_act
        self._is_begun = False
        self._is_stirred = threading.Event()
        self._wall = wall
        self._clock = clock
        self._held: dict[str, dict[str, Held]] = {}
        self._fired_at: dict[tuple[str, str], datetime] = {}
        self._told: dict[str, tuple[str, ...]] = {}
        self._silences: list[Silence] = []
        self._unwritten: list[tuple[Sequence[Change], Sequence[Parcel]]] = []
        self._unreported: list[Report] = []
        self._failing_since: dict[str, float] = {}
        self._is_away_since: float | None = None
        self._due: dict[str, float] = {}
        self.values: dict[str, dict[str, float]] = {}
        """Rule → subject → the last value, for metrics."""
        self.n_evaluations: dict[str, int] = dict.fromkeys(self._rules, 0)
        self.n_failures: dict[str, int] = dict.fromkeys(self._rules, 0)

    # --- reading by others --------------------------------------------------------------------------------------------

    @property
    def rules(self) -> Sequence[Rule]:
        return tuple(self._rules.values())

    @property
    def held(self) -> Mapping[str, Mapping[str, Held]]:
        return self._held

    @property
    def deliveries(self) -> Sequence[Delivery]:
        return tuple(self._deliveries.values())

    @property
    def failing_seconds(self) -> Mapping[str, float]:
        """Rule → for how long it could not be asked."""
        now = self._clock()
        return {name: now - since for name, since in self._failing_since.items()}

    @property
    def receivers(self) -> Mapping[str, Receiver]:
        """By name, as they are told now."""
        return {name: delivery.receiver for name, delivery in self._deliveries.items()}

    # --- life ---------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """
        Go on where the last life has ended; what it could not deliver is sent now.

        Raises:
            StoreError, SchemaBehind: the history cannot be read.
        """
        now = self._now()
        self.write_down()
        keeper = self._opened()
        past = keeper.past(now)
        self._silences = keeper.silences(now)
        self._told = dict(past.told)
        self._fired_at = dict(past.changed_at)
        self._held = {rule: dict(held) for rule, held in past.held.items() if rule in self._rules}
        for delivery in self._deliveries.values():
            delivery.add([p for p in past.undelivered if p.receiver == delivery.receiver.name])
        for name, held in past.held.items():
            if name not in self._rules:
                self._end_of_a_rule(name, held, now)
        for name in self._held:
            self._hold(name)
        log.info("started rules=%d receivers=%d firing=%d undelivered=%d", len(self._rules), len(self._deliveries),
                 sum(h.phase == "firing" for held in self._held.values() for h in held.values()),
                 len(past.undelivered))  # fmt: skip
        self._is_begun = True

    def stand_down(self) -> None:
        """Leave telling to another service: forget what fires and what is not delivered; it reads both."""
        for delivery in self._deliveries.values():
            delivery.clear()
        self._held, self._told, self._fired_at = {}, {}, {}
        self.values.clear()
        self._failing_since.clear()
        self._unwritten.clear()
        self._is_begun = False

    def run(self, stop: threading.Event) -> bool:
        """
        Go round until told to stop. While another service leads, only look after this machine and the store.

        Returns:
            whether no statement is running any more; Python does not exit before the last one has its answer.
        """
        running: dict[str, tuple[Future[Sequence[Reading]], datetime, Rule]] = {}
        spread = 0.0
        start = self._clock()
        for name in self._rules:  # not all in one moment
            self._due[name] = start + spread
            spread += 0.05
        next_silences = next_gauges = next_blind = start
        pool = ThreadPoolExecutor(N_THREADS, thread_name_prefix="ask")
        try:
            while not stop.is_set():
                now = self._clock()
                leads = self._take_the_lead()
                for name, rule in self._rules.items() if leads else ():
                    if name != BLIND and self._due[name] <= now and name not in running:
                        at = self._now()
                        running[name] = pool.submit(self._ask, rule, at), at, rule
                        self._due[name] = now + rule.period.total_seconds()
                for name, (future, at, rule) in list(running.items()):
                    if future.done():
                        del running[name]
                        if leads and self._rules.get(name) is rule:  # else it was asked by a rule that is no more
                            self.take(rule, future, at)
                if self._is_stirred.is_set():
                    self._is_stirred.clear()
                    self._between_rounds()
                if now >= next_blind:
                    next_blind = now + BLIND_EVERY_SECONDS
                    self._look_at_ourselves()
                if now >= next_silences:
                    next_silences = now + SILENCES_SECONDS
                    self._read_silences()
                if now >= next_gauges:
                    next_gauges = now + GAUGES_SECONDS
                    self._write_gauges()
                self.write_down()
                self._reports.wait(POLL_SECONDS)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            self.write_down()
        return not wait([future for future, *_ in running.values()], STOP_SECONDS).not_done

    def stir(self) -> None:
        """Have `between_rounds` called soon, by the thread that goes round. Safe in a signal handler."""
        self._is_stirred.set()

    def reconfigure(self, rules: Sequence[Rule], receivers: Sequence[Receiver], ask: Ask) -> None:
        """
        Go on with other rules and receivers; what fires goes on firing, by the rule of the same name.

        A rule that is gone ends, and so does what fires by it. A receiver of a known name keeps what it has not got
        yet, wherever it is now; a new one gets what was kept for its name. To be called by the thread that goes round.
        """
        now, before = self._now(), self._rules
        for name in [name for name in before if name not in {rule.name for rule in rules}]:
            self._end_of_a_rule(name, self._held.pop(name, {}), now)
            for known in (self.values, self.n_evaluations, self.n_failures, self._failing_since, self._due):
                known.pop(name, None)
        self._rules = {rule.name: rule for rule in rules}
        self._ask = ask
        for name, rule in self._rules.items():
            self.n_evaluations.setdefault(name, 0)
            self.n_failures.setdefault(name, 0)
            if before.get(name) != rule:
                self._due[name] = self._clock()
        self._replace_receivers(receivers, now)
        for name in self._held:
            self._hold(name)
        self._read_silences()

    def _take_the_lead(self) -> bool:
        """Begin where it is this service's turn, stand down where it no longer is; return whether it asks the rules."""
        if not self._is_leading():
            if self._is_begun:
                self.stand_down()
            return False
        if not self._is_begun:
            try:
                self.begin()
            except OUT_OF_REACH as error:
                self._lost(error)
        return self._is_begun

    def take(self, rule: Rule, future: "Future[Sequence[Reading]]", at: datetime) -> None:
        """Evaluate a rule with what came of asking it."""
        try:
            rows = future.result()
        except (StoreError, ValueError) as error:
            self.n_failures[rule.name] += 1
            if isinstance(error, StoreAway):
                self._is_away()
            elif rule.name not in self._failing_since:
                log.warning("rule fails rule=%s: %s", rule.name, error)
                self._failing_since[rule.name] = self._clock()
            return
        self._is_back()
        if self._failing_since.pop(rule.name, None) is not None:
            log.info("rule works again rule=%s", rule.name)
        self.n_evaluations[rule.name] += 1
        if self._may_act():
            self.apply(rule, rows, at)

    def apply(self, rule: Rule, rows: Sequence[Reading], at: datetime) -> None:
        """Evaluate a rule with its rows of an instant; write down and hand on what has changed."""
        self.values[rule.name] = {row.subject: row.value for row in rows if row.value is not None}
        held, changes = evaluate(rule, rows, self._held.get(rule.name, {}), at)
        self._held[rule.name] = held
        parcels: list[Parcel] = []
        for change in changes:
            key = (rule.name, change.subject)
            if change.state == "firing":
                self._fired_at[key] = change.at
                self._told.pop(change.fingerprint, None)
            elif change.state == "resolved":
                self._fired_at.pop(key, None)
                told = message(change, rule)
                for receiver in self._told.pop(change.fingerprint, ()):
                    parcels.append(Parcel(change.at, receiver, told))
            log.log(
                logging.INFO if change.state in ("firing", "resolved") else logging.DEBUG,
                "%s rule=%s subject=%s value=%g threshold=%g since=%s", change.state, change.rule, change.subject,
                change.value, change.threshold, change.since.isoformat(timespec="milliseconds"),
            )  # fmt: skip
        parcels += self._tell_who_is_not_told(rule, at)
        if changes or parcels:
            self._commit(changes, parcels)
        self._hold(rule.name)

    def write_down(self) -> None:
        """Write what could not be written before, and what became of deliveries."""
        self._unreported += self._reports.take()
        if not self._unwritten and not self._unreported:
            return
        try:
            keeper = self._opened()
            while self._unwritten:
                keeper.write(*self._unwritten[0])
                del self._unwritten[0]
            if self._unreported:
                keeper.report(self._unreported)
                self._unreported = []
        except OUT_OF_REACH as error:
            self._lost(error)
        del self._unwritten[:-MAX_UNWRITTEN]
        del self._unreported[:-MAX_UNWRITTEN]

    # --- within -------------------------------------------------------------------------------------------------------

    def _replace_receivers(self, receivers: Sequence[Receiver], now: datetime) -> None:
        before, self._deliveries = self._deliveries, {}
        fresh = []
        for receiver in receivers:
            delivery = before.pop(receiver.name, None)
            if delivery is None:
                delivery = self._deliver(receiver)
                fresh.append(delivery)
            elif delivery.receiver != receiver:
                delivery.replace(receiver)
            self._deliveries[receiver.name] = delivery
        stop_all(list(before.values()))
        self.write_down()
        kept: Sequence[Parcel] = ()
        if fresh and self._is_begun:
            try:
                kept = self._opened().past(now).undelivered
            except OUT_OF_REACH as error:
                self._lost(error)
        for delivery in fresh:
            delivery.add([parcel for parcel in kept if parcel.receiver == delivery.receiver.name])
            delivery.start()

    def _tell_who_is_not_told(self, rule: Rule, at: datetime) -> list[Parcel]:
        """Return the messages about what fires and who does not know it: it, its end of silence or he is new."""
        parcels: list[Parcel] = []
        for subject, held in self._held[rule.name].items():
            name = fingerprint(rule.name, subject)
            told_to = self._told.get(name, ())
            receivers = tuple(r for r in rule.receivers if r in self._deliveries and r not in told_to)
            if held.phase != "firing" or not receivers:
                continue
            if is_silenced(self._silences, rule.name, subject, at):
                continue
            self._told[name] = told_to + receivers
            fired_at = self._fired_at.get((rule.name, subject), at)
            told = replace(self._message(rule, subject, held), at=at)
            parcels += [Parcel(fired_at, receiver, told) for receiver in receivers]
        return parcels

    def _message(self, rule: Rule, subject: str, held: Held) -> Message:
        at = self._fired_at.get((rule.name, subject), held.since)
        change = Change(at, rule.name, "firing", subject, held.value, rule.threshold, rule.severity, held.since,
                        held.labels)  # fmt: skip
        return message(change, rule)

    def _commit(self, changes: Sequence[Change], parcels: Sequence[Parcel]) -> None:
        self._unwritten.append((changes, parcels))
        self.write_down()
        for name in dict.fromkeys(parcel.receiver for parcel in parcels):
            delivery = self._deliveries.get(name)
            if delivery is not None:
                delivery.add([parcel for parcel in parcels if parcel.receiver == name])

    def _hold(self, rule_name: str) -> None:
        """Have receivers that forget know what fires and was told to them."""
        for name, delivery in self._deliveries.items():
            if delivery.receiver.kind != "alertmanager":
                continue
            delivery.hold(
                [
                    self._message(self._rules[rule], subject, held)
                    for rule, subjects in self._held.items()
                    for subject, held in subjects.items()
                    if held.phase == "firing" and name in self._told.get(fingerprint(rule, subject), ())
                ]
            )

    def _end_of_a_rule(self, name: str, held: Mapping[str, Held], now: datetime) -> None:
        """Resolve what fires by a rule that is not there any more."""
        gone = Rule(name, "", 0.0)
        for subject, was in held.items():
            state = "resolved" if was.phase == "firing" else "inactive"
            change = Change(now, name, "resolved" if state == "resolved" else "inactive", subject, was.value, 0.0,
                            gone.severity, was.since, was.labels)  # fmt: skip
            told = self._told.pop(change.fingerprint, ()) if state == "resolved" else ()
            self._commit([change], [Parcel(now, receiver, message(change, gone)) for receiver in told])

    def _look_at_ourselves(self) -> None:
        rule = self._rules.get(BLIND)
        if rule is None:
            return
        now = self._clock()
        rows = [Reading(name, round(seconds, 1)) for name, seconds in self.failing_seconds.items()]
        if self._is_away_since is not None:
            rows.append(Reading("clickhouse", round(now - self._is_away_since, 1)))
        self.n_evaluations[BLIND] += 1
        self.apply(rule, rows, self._now())

    def _read_silences(self) -> None:
        try:
            self._silences = self._opened().silences(self._now())
        except OUT_OF_REACH as error:
            self._lost(error)

    def _write_gauges(self) -> None:
        try:
            keeper = self._opened()
            at = self._now()
            failing = [("rule_failing_seconds", name, seconds) for name, seconds in self.failing_seconds.items()]
            keeper.gauges([(at, *sample) for sample in [*self._sample(keeper), *failing]])
        except OUT_OF_REACH as error:
            self._lost(error)
            if not self._is_begun and isinstance(error, StoreAway):
                self._is_away()  # nobody asks here, and whoever leads may be gone with the store
        else:
            if not self._is_begun:
                self._is_back()

    def _is_away(self) -> None:
        if self._is_away_since is None:
            log.warning("ClickHouse is away: no rule is evaluated")
            self._is_away_since = self._clock()

    def _is_back(self) -> None:
        if self._is_away_since is not None:
            log.info("ClickHouse is back after_seconds=%.0f", self._clock() - self._is_away_since)
            self._is_away_since = None

    def _opened(self) -> Keeper:
        if self._keeper is None:
            self._keeper = self._open()
        return self._keeper

    def _lost(self, error: GnomonError) -> None:
        if self._keeper is not None:
            log.warning("the history cannot be reached: %s", error)
        self._keeper = None

    def _now(self) -> datetime:
        """Return the wall time in whole milliseconds, as ClickHouse keeps it."""
        now = self._wall()
        return now - timedelta(microseconds=now.microsecond % 1000)
