"""`gnomon ingest` as a worker of a cluster, on a real broker."""

import json
from base64 import b64decode
from pathlib import Path

import pytest

from gnomon.events import codec, topics
from ingest.ending import EXIT_STATUS
from tests.ingest.engine_process import EngineProcess
from tests.ingest.events import mixture, primary
from tests.ingest.kafka.cluster import Cluster, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.timeout(240)]


def test_what_is_on_the_topics_is_stored(cluster: Cluster) -> None:
    """Every event has its row at home; the worker says it is well, and ends in peace."""
    records = mixture(640)
    cluster.produce(records)
    worker = cluster.start_worker()
    cluster.wait_stored(len(records))

    status, health = worker.health()
    assert status == 200, health
    assert set(health["partitions"].values()) == {"reading"}
    assert "gnomon_ingest_partitions 8" in worker.metrics()
    assert worker.stop() == 0, worker.said()
    assert cluster.n_stored == len(records)


def test_a_worker_that_is_killed_leaves_no_file_behind(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where it stands nor among the temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    cluster.produce(mixture(64))
    worker = cluster.start_worker()
    cluster.wait_stored(64)
    worker.kill()

    assert list(tmp_path.iterdir()) == []


def test_a_worker_waits_for_its_topics(broker: str, clickhouse: EngineProcess, topic_prefix: str) -> None:
    """It says which command makes them, is not well meanwhile, and begins when they are there."""
    cluster = Cluster(broker, clickhouse, topic_prefix)
    try:
        worker = cluster.start_worker()
        wait_for(lambda: "run `gnomon migrate`" in worker.said(), 60, worker.said)
        assert "no Kafka topic" in worker.said()
        assert topics.RESPONSES in worker.said()
        cluster.make_topics()
        records = mixture(64)
        cluster.produce(records)
        cluster.wait_stored(len(records))
        assert worker.stop() == 0
    finally:
        cluster.close()


def test_a_worker_ends_in_time_whatever_holds_it_up(cluster: Cluster) -> None:
    """A ClickHouse that answers nobody keeps no worker from ending; the next one stores what is left, nothing twice."""
    records = mixture(640)
    cluster.produce(records[:320])
    worker = cluster.start_worker("--stop-timeout", "3")
    cluster.wait_stored(320)
    with cluster.clickhouse.paused():
        cluster.produce(records[320:])
        wait_for(lambda: sum(worker.health()[1]["lag"].values()) > 0, 60, worker.said)
        status = worker.stop(60)

    assert status == EXIT_STATUS, worker.said()
    assert "not stopped within 3 s" in worker.said()
    after = cluster.start_worker()
    cluster.wait_stored(len(records))
    assert after.stop() == 0, after.said()
    assert cluster.n_stored == len(records)


def test_two_workers_share_the_partitions(cluster: Cluster) -> None:
    """Each has half of them, and both store."""
    workers = [cluster.start_worker(), cluster.start_worker()]
    wait_for(
        lambda: all(len(w.health()[1].get("partitions", {})) == 4 for w in workers),
        60,
        lambda: str([w.health() for w in workers]),
    )
    records = mixture(1600)
    cluster.produce(records)
    cluster.wait_stored(len(records))

    owned = [set(w.health()[1]["partitions"]) for w in workers]
    assert owned[0] & owned[1] == set()
    assert len(owned[0] | owned[1]) == 8
    assert all(w.health()[1]["events"] > 0 for w in workers)
    assert [w.stop() for w in workers] == [0, 0]


def test_a_topic_that_was_made_anew_is_another_log(cluster: Cluster) -> None:
    """Deleted and made again under the same name, it begins at 0: nothing of it is taken for stored."""
    first, second = mixture(320), mixture(480, start=320)
    cluster.produce(first)
    worker = cluster.start_worker()
    cluster.wait_stored(len(first))
    assert worker.stop() == 0
    cluster.delete_topics()
    cluster.make_topics()
    cluster.produce(second)
    cluster.start_worker()
    cluster.wait_stored(len(first) + len(second))

    assert cluster.n_stored == len(first) + len(second)
    ((n,),) = cluster.rows(
        f"SELECT uniqExact(log_id) FROM gnomon_core.requests WHERE topic = '{cluster.prefix}{topics.RESPONSES}'"
    )
    assert n == "2"


def test_tables_that_know_more_than_the_topic_are_a_named_error(cluster: Cluster) -> None:
    """Never silence: the partition stands still, health says so, the line names both numbers; others go on."""
    cluster.produce(mixture(64))
    worker = cluster.start_worker()
    cluster.wait_stored(64)
    assert worker.stop() == 0
    topic = cluster.prefix + topics.RESPONSES
    ((log_id, n),) = cluster.rows(
        f"SELECT any(log_id), max(next) FROM gnomon_core.sink_progress WHERE topic = '{topic}' AND part = 0"
    )
    engine = cluster.clickhouse.connect()
    engine.command(
        "INSERT INTO gnomon_core.sink_progress (log_id, topic, part, hour, n, next, epoch, log_end, dropped, at) "
        f"SELECT '{log_id}', '{topic}', 0, toDateTime64(0, 3), 0, 1000000, 0, 0, 0, now64(3)"
    )
    engine.close()
    worker = cluster.start_worker()
    wait_for(lambda: "but the tables have it up to 1000000" in worker.said(), 60, worker.said)

    status, health = worker.health()
    assert status == 503
    assert f"ends at {n}" in health["partitions"][f"{topic}/0"]
    wait_for(lambda: worker.health()[1]["partitions"][f"{topic}/1"] == "reading", 30)


def test_dead_letters_reach_their_topic_and_have_a_limit(cluster: Cluster) -> None:
    """Each on the topic with its bytes; too many and the partition stands still until a person has looked."""
    worker = cluster.start_worker("--max-dead-letters", "10")
    cluster.produce([b"poison %d" % n for n in range(8)] + mixture(32))
    cluster.wait_stored(40)
    letters = cluster.consume(topics.DEAD_LETTERS, 8)
    assert sorted(b64decode(json.loads(letter)["bytes_base64"]) for letter in letters) == [
        b"poison %d" % n for n in range(8)
    ]
    cluster.produce([b"more poison %d" % n for n in range(8)])
    cluster.wait_stored(48)
    cluster.produce([b"even more"])
    wait_for(lambda: worker.health()[0] == 503, 30, worker.said)
    assert cluster.n_stored == 48
    assert "--max-dead-letters 0" in worker.said()
    assert worker.stop() == 0
    cluster.start_worker("--max-dead-letters", "0")
    cluster.wait_stored(49)


def test_an_event_that_is_sent_again_is_stored_once(cluster: Cluster) -> None:
    """By whichever worker: the second one never saw the first sending."""
    records = [codec.encode(primary(n, event_id=f"00000000000000aa:{n}")) for n in range(100)]
    cluster.produce(records[:60])
    first = cluster.start_worker()
    cluster.wait_stored(60)
    assert first.stop() == 0
    cluster.produce(records[30:])
    second = cluster.start_worker()
    cluster.wait_stored(100)
    wait_for(lambda: "gnomon_ingest_repeated_total" in second.metrics(), 10)
    assert second.stop() == 0

    assert cluster.n_stored == 100
    assert cluster.rows("SELECT count(), uniqExact(event_id) FROM gnomon.requests AS v, gnomon_core.requests AS t "
                        "WHERE v.request_id = t.request_id") == [["100", "100"]]  # fmt: skip
    assert cluster.rows("SELECT sum(shipped), sum(stored), sum(distinct_stored) FROM gnomon.reconciliation") == [
        ["100", "100", "100"]
    ]


def test_what_kafka_has_deleted_unread_is_counted(cluster: Cluster) -> None:
    """The worker goes on at the oldest there is, says how many are lost, and counts them."""
    topic = cluster.prefix + topics.RESPONSES
    cluster.produce(mixture(640))
    worker = cluster.start_worker()
    cluster.wait_stored(640)
    assert worker.stop() == 0
    ((next_text,),) = cluster.rows(
        f"SELECT max(next) FROM gnomon_core.sink_progress WHERE topic = '{topic}' AND part = 1"
    )
    start = int(next_text)
    cluster.produce(mixture(640, start=640))
    cluster.delete_records(topics.RESPONSES, 1, start + 7)
    worker = cluster.start_worker()
    cluster.wait_stored(1280 - 7)

    wait_for(lambda: f"events lost log={topic}/1 from={start} to={start + 7} n=7" in worker.said(), 10, worker.said)
    assert f'gnomon_ingest_lost_events_total{{log="{topic}/1"}} 7' in worker.metrics()
    assert cluster.n_stored == 1280 - 7
