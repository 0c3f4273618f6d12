"""
Exactly once on a real broker: workers, broker and ClickHouse are killed, paused and joined by others, under load.

A shipper sends all the while and now and then begins again a little further back. At the end every row of every event
is there once: what the tables hold is compared with the steps run in one go. `-m deep` does each harm twenty times.
"""

import asyncio
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from gnomon.cli.reconcile import faults
from gnomon.config.model import Settings
from ingest.batch import decode
from ingest.rows import rows_of
from ingest.settings import context
from ingest.tables import TABLES, column_index
from tests.broker.local import LocalBroker
from tests.ingest.engine_process import EngineProcess
from tests.ingest.events import mixture
from tests.ingest.kafka.cluster import Cluster, Worker, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.timeout(1800)]

Harm = Literal["worker killed", "worker paused", "worker stopped", "rebalance", "engine killed", "broker killed"]
DAYS_NS = 3 * 86_400 * 10**9
COUNTED = [name for name in TABLES if not name.endswith("ly") and name not in ("bodies", "dead_letters")]
EVENTS_PER_SECOND = 700


class Shipper:
    """Sends what it is given, in order; begins again a little further back now and then."""

    def __init__(self, cluster: Cluster, seed: int, n_max: int) -> None:
        self._cluster = cluster
        self._chance = random.Random(seed)
        self.records = mixture(n_max, step_ns=DAYS_NS // n_max)
        self.n_sent = 0
        self.n_again = 0
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="shipper")

    def _run(self) -> None:
        try:
            asyncio.run(self._ship())
        except BaseException as error:
            self._error = error

    async def _ship(self) -> None:
        started = time.monotonic()
        while self.n_sent < len(self.records) and not self._stop.is_set():
            producer = AIOKafkaProducer(
                bootstrap_servers=self._cluster.broker, enable_idempotence=True, linger_ms=5, request_timeout_ms=60_000
            )
            try:
                await producer.start()
            except KafkaConnectionError:
                await producer.stop()
                await asyncio.sleep(0.2)
                continue
            try:
                again = min(self._chance.randint(0, 40), self.n_sent)
                # Nobody's number is above the greatest seen but those of records that have no number.
                at = self.n_sent - again
                life = at + self._chance.randint(500, 2500)
                while at < min(life, len(self.records)) and not self._stop.is_set():
                    if at > (time.monotonic() - started) * EVENTS_PER_SECOND:
                        await asyncio.sleep(0.02)
                        continue
                    chosen = self.records[at : at + 50]
                    if at < self.n_sent:
                        chosen = [r for r in self.records[at : self.n_sent] if has_number(r)]
                        self.n_again += len(chosen)
                        at = self.n_sent
                    else:
                        at += len(chosen)
                    for record in chosen:
                        topic, partition = self._cluster.place(record)
                        await producer.send(topic, record, partition=partition)
                    await producer.flush()
                    self.n_sent = max(self.n_sent, at)
            finally:
                await producer.stop()

    @contextmanager
    def sending(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join(120)
            assert not self._thread.is_alive()
            if self._error is not None:
                raise self._error


def has_number(record: bytes) -> bool:
    """Return whether an event of a process with a plain number: all that a proxy sends are."""
    batch = decode(0, [record], None, {})
    return bool(batch.seen)


def expected(records: list[bytes]) -> dict[str, Counter[str]]:
    """Return per table how many rows each event has, from the steps alone."""
    step = rows_of(decode(0, records), context(Settings()), 0)
    out = {
        name: Counter(row[column_index(TABLES[name], "event_id")] for row in step.rows.tables[name]) for name in COUNTED
    }
    out["dead_letters"] = Counter(row[4].hex() for row in step.rows.tables["dead_letters"])
    return out


def stored(cluster: Cluster) -> dict[str, Counter[str]]:
    out = {
        name: Counter(
            {
                row[0]: int(row[1])
                for row in cluster.rows(
                    f"SELECT event_id, count() FROM gnomon_core.{name} WHERE topic != 'missing' GROUP BY 1"
                )
            }
        )
        for name in COUNTED
    }
    dead = cluster.rows("SELECT lower(hex(bytes)), count() FROM gnomon_core.dead_letters GROUP BY 1")
    out["dead_letters"] = Counter({row[0]: int(row[1]) for row in dead})
    return out


def check(cluster: Cluster, shipper: Shipper, done: Counter[str]) -> None:
    """Every row of every event that was sent is there once; rollups, money and progress agree."""
    records = shipper.records[: shipper.n_sent]
    wanted = expected(records)
    n = len(records)
    cluster.wait_stored(n, 120)
    wait_for(
        lambda: cluster.rows("SELECT sum(n) FROM gnomon_core.sink_progress") == [[str(n)]],
        30,
        lambda: str(cluster.rows("SELECT topic, part, sum(n), max(next) FROM gnomon_core.sink_progress GROUP BY 1, 2")),
    )
    found = stored(cluster)
    lost = {name: sum((wanted[name] - found[name]).values()) for name in wanted}
    doubled = {name: sum((found[name] - wanted[name]).values()) for name in wanted}
    print(f"{dict(done)}: {n} events, {shipper.n_again} sent again, lost {sum(lost.values())}, doubled "
          f"{sum(doubled.values())}")  # fmt: skip

    assert (dict.fromkeys(wanted, 0), dict.fromkeys(wanted, 0)) == (lost, doubled), done
    stages = ("hour", "accepted", "shipped", "stored", "distinct_stored", "dead_lettered")
    hours = [
        dict(zip(stages, row, strict=True))
        for row in cluster.rows(f"SELECT {', '.join(stages)} FROM gnomon.reconciliation ORDER BY hour")
    ]
    assert [line for hour in hours for line in faults(hour)] == []
    assert sum(int(hour["shipped"]) for hour in hours) == n
    for rollup, source, where in (
        ("spend_hourly", "attempts", "1"),
        ("divergence_minutely", "comparisons", "1"),
        ("health_minutely", "attempts", "kind NOT IN ('head_poll')"),
    ):
        assert cluster.rows(f"SELECT sum(n) FROM gnomon_core.{rollup}") == cluster.rows(
            f"SELECT count() FROM gnomon_core.{source} WHERE {where}"
        ), (rollup, done)
    assert cluster.rows("SELECT sum(usd), sum(units) FROM gnomon_core.spend_hourly") == cluster.rows(
        "SELECT sum(usd), sum(units) FROM gnomon_core.attempts"
    )


class Staff:
    """Two places for workers; what ends by itself is started again, as a supervisor would."""

    def __init__(self, cluster: Cluster, n: int = 1) -> None:
        self._cluster = cluster
        self.workers = [cluster.start_worker() for _ in range(n)]
        self.ended: Counter[str] = Counter()

    def replace(self, place: int) -> Worker:
        self.workers[place] = self._cluster.start_worker()
        return self.workers[place]

    def look(self) -> None:
        for place, worker in enumerate(self.workers):
            status = worker.process.poll()
            if status is not None:
                self.ended[f"a worker ended with {status}"] += 1
                self.replace(place)


def do(harm: Harm, staff: Staff, cluster: Cluster, broker: LocalBroker | None, chance: random.Random) -> None:
    place = chance.randrange(len(staff.workers))
    match harm:
        case "worker killed":
            staff.workers[place].kill()
            staff.replace(place)
        case "worker paused":
            paused = staff.workers[place]
            paused.process.send_signal(signal.SIGSTOP)
            second = cluster.start_worker()
            time.sleep(chance.uniform(3.0, 5.0))
            paused.process.send_signal(signal.SIGCONT)
            time.sleep(chance.uniform(0.0, 2.0))
            second.stop()
        case "worker stopped":
            staff.workers[place].stop()
            staff.replace(place)
        case "rebalance":
            second = cluster.start_worker()
            time.sleep(chance.uniform(2.0, 5.0))
            if chance.random() < 0.5:
                second.kill()
            else:
                # A worker that has not come as far as to listen for it is ended by the signal itself.
                assert second.stop() in (0, -signal.SIGTERM), second.said()[-3000:]
        case "engine killed":
            cluster.clickhouse.kill()
            time.sleep(chance.uniform(0.0, 2.0))
            cluster.clickhouse.start()
        case "broker killed":
            assert broker is not None
            broker.kill()
            time.sleep(chance.uniform(0.0, 2.0))
            broker.start()


def run(cluster: Cluster, harms: list[Harm], seed: int, broker: LocalBroker | None = None, n_workers: int = 1) -> None:
    chance = random.Random(seed)
    done: Counter[str] = Counter()
    staff = Staff(cluster, n_workers)
    shipper = Shipper(cluster, seed, 400_000)
    with shipper.sending():
        wait_for(lambda: shipper.n_sent > 500, 30)
        for harm in harms:
            time.sleep(chance.uniform(1.0, 3.5))
            do(harm, staff, cluster, broker, chance)
            staff.look()
            done[harm] += 1
        time.sleep(2.0)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and cluster.n_stored < shipper.n_sent:
        staff.look()
        time.sleep(0.5)
    check(cluster, shipper, done + staff.ended)


SHORT: list[Harm] = ["worker killed", "rebalance", "engine killed", "worker paused"]


def test_whoever_dies_every_row_is_there_once(cluster: Cluster) -> None:
    """A worker is killed, another joins and leaves, ClickHouse is killed, a worker is paused past its session."""
    run(cluster, SHORT, 1)


def test_a_broker_that_is_killed_loses_nothing(
    own_broker: LocalBroker, clickhouse: EngineProcess, topic_prefix: str
) -> None:
    """The worker waits, and goes on by itself when the broker is back."""
    cluster = Cluster(own_broker.address, clickhouse, topic_prefix)
    cluster.make_topics()
    try:
        run(cluster, ["broker killed"], 2, own_broker)
    finally:
        cluster.close()


@pytest.mark.deep
@pytest.mark.parametrize("harm", ["worker killed", "worker stopped", "worker paused", "rebalance", "engine killed"])
def test_twenty_times(cluster: Cluster, harm: Harm) -> None:
    """Each harm alone, twenty times."""
    run(cluster, [harm] * 20, 3)


@pytest.mark.deep
def test_a_broker_twenty_times(own_broker: LocalBroker, clickhouse: EngineProcess, topic_prefix: str) -> None:
    """Killed and started again, twenty times."""
    cluster = Cluster(own_broker.address, clickhouse, topic_prefix)
    cluster.make_topics()
    try:
        run(cluster, ["broker killed"] * 20, 4, own_broker)
    finally:
        cluster.close()


@pytest.mark.deep
def test_two_workers_and_everything_at_once(
    own_broker: LocalBroker, clickhouse: EngineProcess, topic_prefix: str
) -> None:
    """All harms in any order, with two workers."""
    cluster = Cluster(own_broker.address, clickhouse, topic_prefix, n_partitions=3)
    cluster.make_topics()
    every: list[Harm] = [*SHORT, "worker stopped", "broker killed"]
    harms = [harm for harm in every for _ in range(4)]
    random.Random(5).shuffle(harms)
    try:
        run(cluster, harms, 5, own_broker, n_workers=2)
    finally:
        cluster.close()
