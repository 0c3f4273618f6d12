"""The service over a history in memory: what is told to whom, over restarts, silences and outages."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analytics.alerting.delivery import Delivery, stop_all
from analytics.alerting.evaluate import Reading
from analytics.alerting.export import DEFINITIONS, prometheus, render
from analytics.alerting.history import Report
from analytics.alerting.post import Answer
from analytics.alerting.rules import Rule, shipped
from analytics.alerting.service import BLIND, Reports, Service
from analytics.alerting.silences import Silence
from analytics.migrate import SchemaBehind
from analytics.store import StoreAway, StoreError
from gnomon.config.receivers import Receiver
from tests.analytics.alerting.fakes import MemoryHistory, until
from tests.exposition import undeclared

START = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
RULE = Rule("Spend", "SELECT 1", 5.0, receivers=("ops",), severity="page")
BLINDNESS = Rule(BLIND, "SELECT 1", 60.0, receivers=("ops",))


@dataclass
class World:
    """A history, a clock, a receiver, and services one after the other."""

    history: MemoryHistory = field(default_factory=MemoryHistory)
    seconds: float = 0.0
    sent: list[tuple[str, Any]] = field(default_factory=list)
    """Address and body of each delivery."""
    dead: set[str] = field(default_factory=set)
    deliveries: list[Delivery] = field(default_factory=list)
    is_leading: bool = True

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def life(self, *rules: Rule, receivers: Sequence[str] = ("ops",), kind: Any = "webhook") -> Service:
        """Begin a life of the service."""
        reports = Reports()

        def send(url: str, body: object, headers: dict[str, str]) -> Answer:
            if url in self.dead:
                return Answer(0, "dead")
            self.sent.append((url, body))
            return Answer(200)

        made = [Delivery(Receiver(name, kind, name), reports.put, send) for name in receivers]

        def deliver(receiver: Receiver) -> Delivery:
            self.deliveries.append(Delivery(receiver, reports.put, send))
            return self.deliveries[-1]

        service = Service(
            rules, lambda rule, at: [], lambda: self.history, made, reports, wall=lambda: self.now,
            clock=lambda: self.seconds, deliver=deliver, is_leading=lambda: self.is_leading,
            may_act=lambda: self.is_leading,
        )  # fmt: skip
        if self.is_leading:
            service.begin()
        for delivery in made:
            delivery.start()
        self.deliveries += made
        return service

    def end(self) -> None:
        """End the life at hand; what was reported until now is written."""
        stop_all(self.deliveries)
        self.deliveries = []

    def look(self, service: Service, rule: Rule, seconds: float, **values: float) -> None:
        """Evaluate a rule at a time."""
        self.seconds = seconds
        service.apply(rule, [Reading(s, v) for s, v in values.items()], self.now)

    def states(self, url: str = "ops") -> list[tuple[str, str]]:
        return [(body["subject"], body["state"]) for address, body in self.sent if address == url]


@pytest.fixture
def world() -> Iterator[World]:
    it = World()
    yield it
    it.end()


def test_a_change_is_told_once(world: World) -> None:
    """Firing, silence while it lasts, resolved; the history has both."""
    service = world.life(RULE)
    for seconds, value in ((0, 6.0), (10, 7.0), (20, 1.0), (30, 1.0)):
        world.look(service, RULE, seconds, acme=value)
    until(lambda: len(world.sent) == 2)

    assert world.states() == [("acme", "firing"), ("acme", "resolved")]
    assert [(c.state, c.value) for c in world.history.changes] == [("firing", 6.0), ("resolved", 1.0)]


def test_a_restart_does_not_fire_again(world: World) -> None:
    """The next life knows what fires, since when, and who was told; it tells of the end."""
    world.look(world.life(RULE), RULE, 0, acme=6.0)
    until(lambda: len(world.sent) == 1)
    world.end()
    world.history.reports.append(Report(world.now, world.history.parcels[0], True, 1))
    again = world.life(RULE)
    world.look(again, RULE, 60, acme=6.0)
    world.look(again, RULE, 70)
    until(lambda: len(world.sent) == 2)

    assert world.states() == [("acme", "firing"), ("acme", "resolved")]
    assert world.sent[1][1]["since"] == "2026-12-01T10:00:00.000Z"


def test_a_restart_does_not_begin_for_anew(world: World) -> None:
    """What was pending for 20 of 30 seconds has 10 left."""
    rule = replace(RULE, lasts=timedelta(seconds=30))
    world.look(world.life(rule), rule, 0, acme=6.0)
    world.end()
    again = world.life(rule)
    world.look(again, rule, 29, acme=6.0)
    assert world.sent == []
    world.look(again, rule, 30, acme=6.0)
    until(lambda: len(world.sent) == 1)


def test_what_was_not_delivered_is_delivered_by_the_next_life(world: World) -> None:
    """A dead receiver loses nothing over a restart, and the order is kept."""
    world.dead = {"ops"}
    service = world.life(RULE)
    world.look(service, RULE, 0, acme=6.0)
    world.look(service, RULE, 10)
    until(lambda: world.deliveries[0].n_failed)
    world.end()
    world.dead = set()
    world.life(RULE)
    until(lambda: len(world.sent) == 2)

    assert world.states() == [("acme", "firing"), ("acme", "resolved")]


def test_each_receiver_of_a_rule_is_told(world: World) -> None:
    """And no other; a dead one does not hold up the rest."""
    world.dead = {"x"}
    rule = replace(RULE, receivers=("x", "ops"))
    world.look(world.life(rule, receivers=("ops", "x", "y")), rule, 0, acme=6.0)
    until(lambda: len(world.sent) == 1)

    assert world.states("ops") == [("acme", "firing")]
    assert world.states("y") == []


def test_a_silence_keeps_quiet_and_then_tells_what_still_fires(world: World) -> None:
    """The history goes on meanwhile; a subject that is not covered is told."""
    world.history.silenced = [Silence("s", "Spend", "acme", START, START + timedelta(seconds=30))]
    service = world.life(RULE)
    world.look(service, RULE, 0, acme=6.0, b=6.0)
    world.look(service, RULE, 20, acme=6.0)
    until(lambda: len(world.sent) == 2)
    assert world.states() == [("b", "firing"), ("b", "resolved")]
    world.look(service, RULE, 30, acme=6.0)
    until(lambda: len(world.sent) == 3)

    assert world.states()[2] == ("acme", "firing")
    assert [c.state for c in world.history.changes if c.subject == "acme"] == ["firing"]


def test_what_was_silenced_all_the_time_is_never_told(world: World) -> None:
    """Neither its beginning nor its end."""
    world.history.silenced = [Silence("s", "*", "*", START, START + timedelta(hours=1))]
    service = world.life(RULE)
    world.look(service, RULE, 0, acme=6.0)
    world.look(service, RULE, 10)

    assert (world.history.parcels, [c.state for c in world.history.changes]) == ([], ["firing", "resolved"])


def test_a_rule_that_is_gone_resolves(world: World) -> None:
    """Its receivers would else keep the alert for ever."""
    world.look(world.life(RULE), RULE, 0, acme=6.0)
    until(lambda: len(world.sent) == 1)
    world.end()
    world.life(BLINDNESS)
    until(lambda: ("acme", "resolved") in world.states())

    assert world.history.changes[-1].state == "resolved"


def test_while_clickhouse_is_away_it_is_told_and_written_later(world: World) -> None:
    """An alert does not wait for its record."""
    service = world.life(RULE)
    world.history.is_away = True
    world.look(service, RULE, 0, acme=6.0)
    until(lambda: len(world.sent) == 1)
    assert world.history.changes == []
    world.history.is_away = False
    service.write_down()

    assert [c.state for c in world.history.changes] == ["firing"]
    until(lambda: (service.write_down(), world.history.reports)[1])  # type: ignore[func-returns-value]


def nothing(rule: Rule, at: datetime) -> list[Reading]:
    return []


def test_other_rules_come_into_force_and_what_fires_goes_on(world: World) -> None:
    """A threshold that is still crossed fires nothing again; one that is not any more ends it; a new rule begins."""
    other = replace(RULE, name="Other")
    service = world.life(RULE)
    world.look(service, RULE, 0, acme=6.0, b=9.0)
    until(lambda: len(world.sent) == 2)
    dearer = replace(RULE, threshold=8.0)
    service.reconfigure([dearer, other], [Receiver("ops", "webhook", "ops")], nothing)
    world.look(service, dearer, 10, acme=6.0, b=9.0)
    world.look(service, other, 10, c=6.0)
    until(lambda: len(world.sent) == 4)

    assert world.states()[2:] == [("acme", "resolved"), ("c", "firing")]
    assert service._held["Spend"]["b"].since == START
    assert [rule.name for rule in service.rules] == ["Spend", "Other"]
    assert service.n_evaluations == {"Spend": 0, "Other": 0}


def test_what_fires_by_a_rule_that_goes_ends(world: World) -> None:
    """As at a restart without it; its values leave the metrics."""
    service = world.life(RULE, BLINDNESS)
    world.look(service, RULE, 0, acme=6.0)
    until(lambda: len(world.sent) == 1)
    service.reconfigure([BLINDNESS], [Receiver("ops", "webhook", "ops")], nothing)
    until(lambda: len(world.sent) == 2)

    assert world.states() == [("acme", "firing"), ("acme", "resolved")]
    assert (service.values, list(service.n_evaluations)) == ({}, [BLIND])


def test_a_receiver_that_moves_gets_what_it_has_not_got(world: World) -> None:
    """At its new address, at once; nothing is told twice."""
    world.dead = {"ops"}
    service = world.life(RULE)
    world.look(service, RULE, 0, acme=6.0)
    until(lambda: world.deliveries[0].n_failed)
    service.reconfigure([RULE], [Receiver("ops", "webhook", "elsewhere")], nothing)
    until(lambda: len(world.sent) == 1)
    world.look(service, RULE, 10)
    until(lambda: len(world.sent) == 2)

    assert world.states("elsewhere") == [("acme", "firing"), ("acme", "resolved")]
    assert service.receivers["ops"].url == "elsewhere"


def test_a_new_receiver_is_told_what_fires(world: World) -> None:
    """And what was kept for its name; the old one hears nothing again."""
    service = world.life(RULE)
    world.look(service, RULE, 0, acme=6.0)
    until(lambda: len(world.sent) == 1)
    both = replace(RULE, receivers=("ops", "new"))
    receivers = [Receiver(name, "webhook", name) for name in ("ops", "new")]
    service.reconfigure([both], receivers, nothing)
    world.look(service, both, 10, acme=6.0)
    until(lambda: len(world.sent) == 2)
    world.dead = {"new"}
    world.look(service, both, 20)
    until(lambda: len(world.sent) == 3)
    service.reconfigure([both], receivers[:1], nothing)
    world.dead = set()
    service.reconfigure([both], receivers, nothing)
    until(lambda: len(world.sent) == 4)

    assert world.states("ops") == [("acme", "firing"), ("acme", "resolved")]
    assert world.states("new") == [("acme", "firing"), ("acme", "resolved")]


def test_rows_of_a_rule_that_is_another_one_now_are_dropped(world: World) -> None:
    """It was asked before the reload, and answered after it."""
    asked, answer = threading.Event(), threading.Event()
    reports = Reports()

    def ask(rule: Rule, at: datetime) -> list[Reading]:
        asked.set()
        answer.wait(20)
        return [Reading("old", 6.0)]

    loosened = replace(RULE, threshold=1.0)
    reconfigured = threading.Event()

    def reload() -> None:
        service.reconfigure([loosened], [], lambda rule, at: [Reading("new", 6.0)])
        reconfigured.set()

    service = Service([RULE], ask, lambda: world.history, [], reports, between_rounds=reload)
    stop = threading.Event()
    thread = threading.Thread(target=service.run, args=(stop,))
    thread.start()
    try:
        assert asked.wait(20)
        service.stir()
        assert reconfigured.wait(20)
        answer.set()
        until(lambda: any(c.subject == "new" for c in world.history.changes))
    finally:
        answer.set()
        stop.set()
        thread.join(10)

    assert {c.subject for c in world.history.changes} == {"new"}


def test_who_stands_by_tells_nothing_until_it_is_its_turn(world: World) -> None:
    """Then it goes on where the other one has stopped, what was not delivered first."""
    world.dead = {"ops"}
    world.look(world.life(RULE), RULE, 0, acme=6.0)
    until(lambda: world.deliveries[0].n_failed)
    world.end()
    world.dead = set()
    world.is_leading = False
    second = world.life(RULE)
    assert not second._take_the_lead()
    done: Future[Sequence[Reading]] = Future()
    done.set_result([Reading("acme", 6.0), Reading("b", 6.0)])
    second.take(RULE, done, world.now)
    assert (world.sent, len(world.history.changes)) == ([], 1)

    world.is_leading = True
    assert second._take_the_lead()
    until(lambda: len(world.sent) == 1)
    second.take(RULE, done, world.now)
    until(lambda: len(world.sent) == 2)
    assert world.states() == [("acme", "firing"), ("b", "firing")]


def test_who_loses_the_lead_forgets(world: World) -> None:
    """What fires and what waits is the other one's now; nothing is sent any more."""
    world.dead = {"ops"}
    service = world.life(RULE)
    world.look(service, RULE, 0, acme=6.0)
    until(lambda: world.deliveries[0].n_failed)
    world.is_leading = False
    assert not service._take_the_lead()
    world.dead = set()

    assert (dict(service.held), service.deliveries[0].n_waiting) == ({}, 0)
    until(lambda: not service.deliveries[0].n_waiting)
    assert world.sent == []


def test_who_stands_by_tells_that_the_store_is_away(world: World) -> None:
    """Whoever leads may be gone with it: rather twice than never."""
    world.is_leading = False
    service = world.life(BLINDNESS)
    world.history.is_away = True
    for seconds in (0, 61):
        world.seconds = seconds
        service._write_gauges()
        service._look_at_ourselves()
    until(lambda: len(world.sent) == 1)
    world.history.is_away = False
    service._write_gauges()
    service._look_at_ourselves()
    until(lambda: len(world.sent) == 2)

    assert world.states() == [("clickhouse", "firing"), ("clickhouse", "resolved")]


def test_a_schema_that_is_being_made_anew_is_waited_for(world: World) -> None:
    """The server lost its disk: what happens meanwhile is told, and written when the tables are there."""
    service = world.life(RULE)
    world.history.is_away = True
    world.look(service, RULE, 0, acme=6.0)
    service.write_down()
    world.history.is_away = False

    def behind() -> MemoryHistory:
        raise SchemaBehind("the ClickHouse schema is at version 14")

    opened, service._open = service._open, behind
    for step in (service.write_down, service._read_silences, service._write_gauges):
        step()
    assert world.history.changes == []
    service._open = opened
    service.write_down()

    assert [c.state for c in world.history.changes] == ["firing"]


def test_who_is_to_lead_waits_for_a_schema_that_is_being_made_anew(world: World) -> None:
    """A service whose turn comes meanwhile does not end: it begins when the tables are there."""
    world.is_leading = False
    service = world.life(RULE)
    opened = service._open

    def behind() -> MemoryHistory:
        raise SchemaBehind("the ClickHouse schema is at version 14")

    service._open, world.is_leading = behind, True
    assert not service._take_the_lead()
    service._open = opened
    assert service._take_the_lead()


def failed(error: Exception) -> "Future[Sequence[Reading]]":
    future: Future[Sequence[Reading]] = Future()
    future.set_exception(error)
    return future


def test_a_failing_rule_changes_nothing_and_is_told(world: World) -> None:
    """What fires by it goes on firing; after a minute `AlertsBlind` says that it cannot be asked."""
    service = world.life(RULE, BLINDNESS)
    world.look(service, RULE, 0, acme=6.0)
    for seconds in (10, 71):
        world.seconds = seconds
        service.take(RULE, failed(StoreError("no such column")), world.now)
        service._look_at_ourselves()
    until(lambda: len(world.sent) == 2)

    assert world.states() == [("acme", "firing"), ("Spend", "firing")]
    assert service.failing_seconds == {"Spend": 61}
    done: Future[Sequence[Reading]] = Future()
    done.set_result([Reading("acme", 6.0)])
    service.take(RULE, done, world.now)
    service._look_at_ourselves()
    until(lambda: ("Spend", "resolved") in world.states())


def test_an_outage_of_clickhouse_is_one_alert(world: World) -> None:
    """Not one for each rule."""
    other = replace(RULE, name="Other")
    service = world.life(RULE, other, BLINDNESS)
    for seconds in (0, 61):
        world.seconds = seconds
        for rule in (RULE, other):
            service.take(rule, failed(StoreAway("away")), world.now)
        service._look_at_ourselves()
    until(lambda: len(world.sent) == 1)

    assert world.states() == [("clickhouse", "firing")]


def test_a_slow_rule_delays_no_other(world: World) -> None:
    """Each is asked by a thread of a few."""
    release = threading.Event()
    slow, quick = replace(RULE, name="Slow"), replace(RULE, name="Quick")
    reports = Reports()

    def ask(rule: Rule, at: datetime) -> list[Reading]:
        if rule.name == "Slow":
            release.wait(20)
        return [Reading("a", 6.0)]

    service = Service([slow, quick], ask, lambda: world.history, [], reports)
    service.begin()
    stop = threading.Event()
    thread = threading.Thread(target=service.run, args=(stop,))
    thread.start()
    try:
        until(lambda: any(c.rule == "Quick" for c in world.history.changes))
        assert not any(c.rule == "Slow" for c in world.history.changes)
    finally:
        release.set()
        stop.set()
        thread.join(10)


def test_metrics_are_the_closed_list(world: World) -> None:
    """Each with help and type; texts are escaped."""
    service = world.life(RULE, BLINDNESS)
    world.look(service, RULE, 0, **{'a"b': 6.0})
    text = render(service)

    assert 'gnomon_alert_value{rule="Spend",subject="a\\"b"} 6' in text
    assert 'gnomon_alert_firing{rule="Spend",subject="a\\"b",severity="page"} 1' in text
    assert [line.split()[2] for line in text.splitlines() if line.startswith("# HELP")] == [d.name for d in DEFINITIONS]
    assert undeclared(text, {d.name: d.labels for d in DEFINITIONS}) == []


def test_the_rules_are_exported_for_prometheus() -> None:
    """The same thresholds over the values that the service shows; a rule file that parses."""
    import yaml

    document = yaml.safe_load(prometheus([*shipped(), replace(RULE, is_above=False, lasts=timedelta(seconds=90))]))
    by_name = {rule["alert"]: rule for rule in document["groups"][0]["rules"]}

    assert set(by_name) == {rule.name for rule in shipped()} | {"Spend"}
    assert by_name["FallbackSpend"]["expr"] == 'gnomon_alert_value{rule="FallbackSpend"} > 5'
    assert (by_name["Spend"]["expr"], by_name["Spend"]["for"]) == ('gnomon_alert_value{rule="Spend"} < 5', "90s")
    assert by_name["Spend"]["labels"] == {"severity": "critical", "service": "gnomon"}
