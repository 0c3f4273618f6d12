"""The worker's /metrics shows what the shipper has written, and that there is none where there is none."""

import os
import time
from pathlib import Path

from gnomon.events.shipped import FILE, STALE_SECONDS
from proxy.shipper.metrics import DEFINITIONS, Counts, exposition


def test_what_was_counted_is_shown(tmp_path: Path) -> None:
    """Each with its help and its type, as Prometheus wants it."""
    counts = Counts()
    counts.add("gnomon_shipper_events_total", 3)
    counts.add("gnomon_shipper_dead_letters_total", 1, "too_large")
    counts.set("gnomon_shipper_up", 1)
    counts.write(tmp_path)
    lines = exposition(tmp_path).splitlines()

    assert "gnomon_shipper_events_total 3" in lines
    assert 'gnomon_shipper_dead_letters_total{reason="too_large"} 1' in lines
    assert "# TYPE gnomon_shipper_up gauge" in lines
    assert [line.split()[2] for line in lines if line.startswith("# TYPE")] == [d.name for d in DEFINITIONS]


def test_where_no_shipper_was_nothing_is_shown(tmp_path: Path) -> None:
    """A proxy without Kafka says nothing of it."""
    assert exposition(tmp_path) == ""


def test_a_shipper_that_is_no_more_is_down(tmp_path: Path) -> None:
    """Old figures are not shown as if they were now."""
    counts = Counts()
    counts.set("gnomon_shipper_up", 1)
    counts.write(tmp_path)
    past = time.time() - STALE_SECONDS - 1
    os.utime(tmp_path / FILE, (past, past))

    assert [line for line in exposition(tmp_path).splitlines() if not line.startswith("#")] == ["gnomon_shipper_up 0"]
