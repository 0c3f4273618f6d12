"""What is sampled of logs and clocks."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from analytics.alerting.gauges import clock_sample, log_samples, proxy_samples
from gnomon.events.log import Consumer, Writer
from gnomon.events.shipped import FILE, STALE_SECONDS

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def test_a_log_tells_what_waits_in_it(tmp_path: Path) -> None:
    """Written, consumed, dropped, and the share of its room that waits; a folder that is no log is passed over."""
    (tmp_path / "1").mkdir()
    writer = Writer(tmp_path / "0", segment_bytes=1 << 16, max_bytes=1 << 20)
    consumer = Consumer(tmp_path / "0", "ingest")
    for _ in range(100):
        writer.append(b"x" * 100)
    consumer.set(75)
    samples = {name: value for name, subject, value in log_samples(tmp_path, 1 << 20) if subject == "0"}
    consumer.close()
    writer.close()

    assert samples["log_written_events"] == 100
    assert samples["log_consumed_events"] == 75
    assert samples["log_dropped_events"] == 0
    assert 0 < samples["log_unread_ratio"] < 0.25
    assert {subject for _, subject, _ in log_samples(tmp_path, 1 << 20)} == {"0"}


def test_without_logs_there_is_nothing_to_tell(tmp_path: Path) -> None:
    """In the cluster the logs are on other machines."""
    assert log_samples(tmp_path / "none", 1) == []


def test_a_shipper_tells_whether_kafka_takes_events(tmp_path: Path) -> None:
    """Up and what waits for it, from its own file; one that is no more counts as down; where none was, no sample."""
    writer = Writer(tmp_path / "0", segment_bytes=1 << 16, max_bytes=1 << 20)
    Consumer(tmp_path / "0", "ingest").close()
    for _ in range(9):
        writer.append(b"x")
    before = {name for name, _, _ in log_samples(tmp_path, 1 << 20)}
    consumer = Consumer(tmp_path / "0", "shipper")
    consumer.set(4)
    file = tmp_path / "0" / FILE
    file.write_text('gnomon_shipper_up 1\ngnomon_shipper_dead_letters_total{reason="too_large"} 3\n')
    alive = {name: value for name, _, value in log_samples(tmp_path, 1 << 20)}
    past = time.time() - STALE_SECONDS - 1
    os.utime(file, (past, past))
    dead = {name: value for name, _, value in log_samples(tmp_path, 1 << 20)}
    consumer.close()
    writer.close()

    assert not {name for name in before if name.startswith("shipper")}
    assert (alive["shipper_up"], alive["shipper_lag_events"]) == (1, 5)
    assert (dead["shipper_up"], dead["shipper_lag_events"]) == (0, 5)


EXPOSITION = """# HELP gnomon_log_written_total Events that the log has taken since it began, over all processes.
gnomon_log_written_total 1200
gnomon_log_dropped_total 3
gnomon_log_unread_ratio 0.25
gnomon_log_lag_records{consumer="shipper"} 200
gnomon_log_lag_records{consumer="old"} 700
gnomon_requests_total{network="evm:1",outcome="a b"} 17
nonsense
"""


def test_a_proxy_far_away_tells_the_same_by_its_metrics() -> None:
    """The slowest consumer is how far the log is consumed; what is not said is left out, and lines nobody knows too."""
    log = [
        ("log_written_events", "proxy-1:4000", 1200.0),
        ("log_consumed_events", "proxy-1:4000", 500.0),
        ("log_dropped_events", "proxy-1:4000", 3.0),
        ("log_unread_ratio", "proxy-1:4000", 0.25),
    ]
    shipper = [("shipper_up", "proxy-1:4000", 0.0), ("shipper_lag_events", "proxy-1:4000", 200.0)]

    assert proxy_samples("proxy-1:4000", EXPOSITION) == log
    assert proxy_samples("proxy-1:4000", EXPOSITION + "gnomon_shipper_up 0\n") == log + shipper
    assert proxy_samples("proxy-1:4000", "<html>no metrics</html>") == []


@pytest.mark.parametrize(("theirs", "expected"), [(-3.0, -3.0), (0.0, 0.0), (0.05, 0.0), (0.1, 0.0), (2.1, 2.0)])
def test_what_asking_took_is_no_skew(theirs: float, expected: float) -> None:
    """A time between the moments before and after asking agrees."""
    after = NOW + timedelta(seconds=0.1)
    _, subject, value = clock_sample(NOW, NOW + timedelta(seconds=theirs), after)

    assert subject == "clickhouse"
    assert value == pytest.approx(expected)
