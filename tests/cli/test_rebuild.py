"""`gnomon rebuild` as a user runs it, from logs on disk and from Kafka."""

from pathlib import Path

import pytest

from gnomon.cli import main
from gnomon.config.model import Settings
from gnomon.events.log import Writer
from ingest.log_source import LogSource
from ingest.metrics import Metrics
from ingest.runner import Runner, locked
from ingest.settings import RunnerSettings, context
from ingest.tables import TABLES
from tests.ingest.conformance import image_of, places_of
from tests.ingest.conftest import clickhouse, cluster, engine_process
from tests.ingest.engine_process import EngineProcess, migrated_engine
from tests.ingest.events import mixture
from tests.ingest.kafka.cluster import Cluster
from tests.services import ROOT

__all__ = ["clickhouse", "cluster", "engine_process"]

pytestmark = [pytest.mark.clickhouse, pytest.mark.timeout(240)]

OPERATIONS = ROOT / "docs" / "operations.md"
PACE = RunnerSettings(flush_seconds=0, quick_flush_seconds=0, progress_seconds=0, missing_seconds=float("inf"))


def where(cluster: Cluster, data: Path) -> list[str]:
    return ["--config", str(cluster.config), "--data", str(data)]


@pytest.mark.kafka
def test_from_kafka(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Not while a worker is at work; then every row comes back as it was, and a worker goes on behind them."""
    cluster.produce(mixture(320))
    worker = cluster.start_worker()
    cluster.wait_stored(320)
    folder = cluster.clickhouse.folder
    assert main(["rebuild", *where(cluster, folder)]) == 2
    assert "stop every `gnomon ingest` first" in capsys.readouterr().err
    assert worker.stop() == 0
    image, places = image_of(cluster), places_of(cluster)
    engine = cluster.clickhouse.connect()
    engine.command("TRUNCATE TABLE gnomon_core.requests")
    engine.close()

    assert main(["rebuild", *where(cluster, folder)]) == 0
    assert "320 events of 8 logs; hours are anew from the beginning on" in capsys.readouterr().out
    assert image_of(cluster) == image
    assert places_of(cluster) == places
    cluster.produce(mixture(64, start=320))
    cluster.start_worker()
    cluster.wait_stored(384)
    assert cluster.n_stored == 384


def test_on_a_cluster_it_says_what_to_do_instead(clickhouse: EngineProcess, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is asked of any server, and the page that it names has such a section."""
    only = Cluster("nowhere:1", clickhouse, "t.")
    only.config.write_text(only.config.read_text().replace("{url:", "{cluster: prod, url:"), "utf-8")

    assert main(["rebuild", *where(only, clickhouse.folder)]) == 2
    assert "docs/operations.md, Tables again on a cluster" in capsys.readouterr().err
    assert "### Tables again on a cluster\n" in OPERATIONS.read_text("utf-8")


def test_the_page_names_every_table_that_is_to_be_empty() -> None:
    """Those of the sink and the progress; not the epochs."""
    section = OPERATIONS.read_text("utf-8").partition("### Tables again on a cluster\n")[2].partition("\n## ")[0]
    loop = section.partition("for table in ")[2].partition("; do")[0]

    assert set(loop.replace("\\", " ").split()) == set(TABLES)
    assert "TRUNCATE TABLE gnomon_core.sink_progress ON CLUSTER" in section


@pytest.mark.kafka
def test_empty_tables_are_filled_again_by_the_workers(cluster: Cluster, tmp_path: Path) -> None:
    """In place and in another ClickHouse beside the old one: the same rows at the same places, from what Kafka has."""
    cluster.produce(mixture(320))
    worker = cluster.start_worker()
    cluster.wait_stored(320)
    assert worker.stop() == 0
    image, places = image_of(cluster), places_of(cluster)
    with migrated_engine(tmp_path) as beside:
        for tables in (cluster, Cluster(cluster.broker, beside, cluster.prefix)):
            tables.empty()
            worker = tables.start_worker()
            try:
                tables.wait_stored(320)
                assert worker.stop() == 0
            finally:
                tables.close()

            assert image_of(tables) == image
            assert places_of(tables) == places


def test_from_logs(clickhouse: EngineProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a log whose oldest segments are recycled, the rows of those stay."""
    root = tmp_path / "events"
    writer = Writer(root / "0", segment_bytes=64 << 10, max_bytes=1 << 20)
    only = Cluster("nowhere:1", clickhouse, "t.")
    only.config.write_text(
        only.config.read_text().split("  events:")[0] + f"  events: {{log: {{path: '{root}'}}}}\n", "utf-8"
    )
    engine = clickhouse.connect()
    runner = Runner(root, engine, context(Settings()), settings=PACE, metrics=Metrics())
    n = 1000
    for start in range(0, n, 100):
        for record in mixture(100, start=start, step_ns=60 * 10**9):
            writer.append(record)
        while only.n_stored < start + 100:
            runner.round()
    assert LogSource(root / "0").begin > 0
    while only.n_stored < n:
        runner.round()
    for feed in runner._feeds.values():
        feed.progress(runner._clock(), is_forced=True)
        feed.forget()
    image = image_of(only)
    with locked(root):
        assert main(["rebuild", *where(only, clickhouse.folder)]) == 1
        assert "stop it" in capsys.readouterr().err
    engine.command("ALTER TABLE gnomon_core.requests DELETE WHERE off > 900 SETTINGS mutations_sync = 2")

    assert main(["rebuild", *where(only, clickhouse.folder)]) == 0
    assert "events of 1 logs" in capsys.readouterr().out
    assert image_of(only) == image
    writer.close()


def test_without_a_log_it_says_what_to_give(
    clickhouse: EngineProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty folder has nothing to build from; the tables stay."""
    only = Cluster("nowhere:1", clickhouse, "t.")
    only.config.write_text(
        only.config.read_text().split("  events:")[0] + f"  events: {{log: {{path: '{tmp_path}'}}}}\n", "utf-8"
    )

    assert main(["rebuild", *where(only, clickhouse.folder)]) == 2
    assert "no log below" in capsys.readouterr().err
