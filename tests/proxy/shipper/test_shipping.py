"""
On a real broker: everything appended arrives once, in order by partition, whoever is killed meanwhile.

`pytest -m deep` kills ten times as often.
"""

import asyncio
import fcntl
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gnomon.events.log import status
from gnomon.events.topics import RESPONSES
from proxy.shipper.cluster import REQUEST_SECONDS
from proxy.shipper.lane import CHUNK_EVENTS
from tests.broker.local import LocalBroker
from tests.broker.topics import make_topic
from tests.proxy.shipper.shipping import Shipping, event, shipping

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]


@pytest.fixture
def logged(broker: str, topic_prefix: str, tmp_path: Path) -> Iterator[Shipping]:
    with shipping(tmp_path, broker, topic_prefix) as one:
        yield one


def test_everything_arrives_once_in_the_partition_of_its_key(logged: Shipping) -> None:
    """What was in the log before, what comes while it ships, and what comes last; then SIGTERM ends it well."""
    logged.append(12_000)
    logged.start()
    logged.wait(lambda: logged.position > 0)
    logged.append(8_000)
    logged.wait_shipped()
    logged.append(3)
    assert logged.stop() == 0

    assert logged.position == logged.n_appended
    assert logged.check() == {}
    assert logged.metric("gnomon_shipper_events_total") == 20_003
    assert logged.metric("gnomon_shipper_lag_events") == 0


def test_what_was_shipped_makes_room_in_the_log(logged: Shipping) -> None:
    """Acknowledged segments are recycled: the log does not grow with what passes through it."""
    logged.start()
    for _ in range(10):
        logged.append(5_000)
        logged.wait_shipped()

    assert status(logged.log).start > 30_000
    assert logged.check() == {}


@pytest.mark.parametrize("n_kills", [20, pytest.param(200, marks=pytest.mark.deep)])
def test_a_killed_shipper_loses_nothing_and_repeats_little(logged: Shipping, n_kills: int) -> None:
    """Kill -9 at any moment, under load: nothing is lost, at most a chunk a kill comes twice, order holds."""
    dice = random.Random(n_kills)
    for _ in range(n_kills):
        logged.append(dice.randrange(1_000, 12_000))
        logged.start()
        least = max(logged.position, logged.n_appended - 50_000)  # else the log fills up over many kills
        logged.wait(lambda least=least: logged.position > least)  # type: ignore[misc]
        logged.append(dice.randrange(0, 4_000))
        time.sleep(dice.random() * 0.05)
        logged.kill()
    logged.start()
    logged.wait_shipped()
    repeated = logged.check()

    assert repeated.total() <= n_kills * CHUNK_EVENTS
    print(f"{logged.n_appended} events, {n_kills} kills, {repeated.total()} repeated")


@pytest.mark.parametrize("n_rounds", [1, pytest.param(10, marks=pytest.mark.deep)])
def test_a_broker_that_dies_costs_nothing(
    own_broker: LocalBroker, topic_prefix: str, tmp_path: Path, n_rounds: int
) -> None:
    """
    Killed under load and away for 5 s, paused, killed and back at once: all arrives once, the log keeps what waits, a
    line and a metric say so at the time and when it is over.
    """
    with shipping(tmp_path, own_broker.address, topic_prefix) as one:
        one.append(6_000)
        one.start()
        one.wait(lambda: one.position > 0)
        for n in range(n_rounds):
            if n:
                one.append(6_000)
                own_broker.kill()
                own_broker.start()
                one.wait_shipped(60)
            one.append(6_000)
            own_broker.kill()
            back_at = time.monotonic() + 5
            one.append(4_000)
            one.wait(lambda: one.said("Kafka takes no events, the log keeps them"))
            one.wait(lambda: one.metric("gnomon_shipper_up") == 0)
            one.wait(lambda: one.metric("gnomon_shipper_lag_events") > 0)
            time.sleep(max(0.0, back_at - time.monotonic()))
            own_broker.start()
            one.wait_shipped(60)
            one.wait(lambda: one.said("Kafka takes events again"))
            one.wait(lambda: one.metric("gnomon_shipper_up") == 1)
            one.append(2_000)
            own_broker.pause()
            one.append(2_000)
            time.sleep(1.5)
            own_broker.resume()
            one.wait_shipped(60)
        assert one.stop() == 0

        assert one.check() == {}


def test_sigterm_without_kafka_leaves_all_in_the_log(topic_prefix: str, tmp_path: Path) -> None:
    """It ends within its time and status 0; the next shipper begins where it stood."""
    one = Shipping(tmp_path, "127.0.0.1:1", topic_prefix)
    try:
        one.append(100)
        one.start()
        one.wait(lambda: one.said("no answer from Kafka at 127.0.0.1:1"))
        assert one.stop() == 0

        assert one.said("not all was sent; it stays in the log")
        assert one.position == 0
        assert status(one.log).accepted == 100
    finally:
        one.close()


def test_a_shipper_waits_for_its_topics(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """It says which are missing and what to run; when they come it ships. None is made by asking for it."""
    one = Shipping(tmp_path, broker, topic_prefix)
    try:
        one.append(50)
        one.start()
        one.wait(lambda: one.said(f"no Kafka topic {topic_prefix}gnomon.responses.v1, "))
        assert one.said("run `gnomon migrate`")
        assert one.stored() == {}
        one.migrate()
        one.wait_shipped()

        assert one.check() == {}
    finally:
        one.close()


def test_what_the_cluster_refuses_goes_to_the_dead_letters(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """A record above the topic's bound and noise do not stop what comes behind; each is counted, and has a stand-in."""
    one = Shipping(tmp_path, broker, topic_prefix, segment_bytes=8 << 20)
    try:
        asyncio.run(make_topic(broker, topic_prefix + RESPONSES, 4, max_message_bytes="200000"))
        one.migrate_others()
        noise = os.urandom(400_000).hex().encode()
        records = [event(seq)[2] for seq in range(2_000)]
        large = event(7)[2][:-1] + b',"more":"' + noise + b'"}'
        for record in [*records[:900], large, b"\x00noise", *records[900:]]:
            one.writer.append(record)
        one.n_appended = 2_002
        one.start()
        one.wait_shipped()
        one.wait(lambda: one.metric("gnomon_shipper_events_total") == 2_002)
        assert one.metric('gnomon_shipper_dead_letters_total{reason="too_large"}') == 1
        assert one.metric('gnomon_shipper_dead_letters_total{reason="no_event"}') == 1
        assert one.metric("gnomon_shipper_reconnects_total") < 15
        values = [value for records_ in one.stored().values() for _, value in records_]

        assert sorted(v for v in values if v in set(records)) == sorted(records)
        assert b"\x00noise" in values
        stand_ins = [v for v in values if v.startswith(b'{"type":"dead_letter"')]
        assert len(stand_ins) == 1
        assert b'"reason":"too_large"' in stand_ins[0]
        assert len(values) == 2_002
    finally:
        one.close()


def test_a_record_as_large_as_an_event_can_be_arrives(logged: Shipping) -> None:
    """12 MiB that do not compress, which is what two bodies and a request can have, go through `migrate`'s topics."""
    noise = os.urandom(6 << 20).hex().encode()
    logged.writer.close()
    large = event(3)[2][:-1] + b',"more":"' + noise + b'"}'
    one = Shipping(logged.folder / "large", logged.address, logged.prefix, segment_bytes=32 << 20)
    try:
        one.writer.append(large)
        one.n_appended = 1
        one.start()
        one.wait_shipped()

        assert [v for records in one.stored().values() for _, v in records] == [large]
    finally:
        one.close()


def test_two_shippers_do_not_ship_one_log(logged: Shipping) -> None:
    """The second one ends with a line that says why."""
    fd = os.open(logged.log / "shipper.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        logged.start()
        assert logged.process is not None
        assert logged.process.wait(20) == 1
        assert logged.said("another process ships it")
    finally:
        os.close(fd)


@pytest.mark.deep
def test_a_broker_that_does_not_answer_for_long_doubles_nothing(
    own_broker: LocalBroker, topic_prefix: str, tmp_path: Path
) -> None:
    """Longer than the time-out of a request: what is under way is sent again and stored once."""
    with shipping(tmp_path, own_broker.address, topic_prefix) as one:
        one.append(20_000)
        one.start()
        one.wait(lambda: one.position > 0)
        for _ in range(3):
            one.append(20_000)
            time.sleep(0.05)
            own_broker.pause()
            one.append(5_000)
            time.sleep(REQUEST_SECONDS * 1.6)
            own_broker.resume()
            one.wait_shipped(60)

        assert one.check() == {}
