"""A ClickHouse for the tests of this folder, emptied for each, and a cluster around it."""

from collections.abc import Iterator

import pytest

from ingest.tables import TABLES
from tests.ingest.engine_process import EngineProcess, migrated_engine
from tests.ingest.kafka.cluster import Cluster


@pytest.fixture(scope="session")
def engine_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with migrated_engine(tmp_path_factory.mktemp("clickhouse")) as process:
        yield process


@pytest.fixture
def clickhouse(engine_process: EngineProcess) -> EngineProcess:
    """The ClickHouse of this run, with no rows in it."""
    engine = engine_process.connect()
    for table in (*TABLES, "sink_progress"):  # the front remembers the epochs
        engine.command(f"TRUNCATE TABLE gnomon_core.{table}")
    engine.close()
    return engine_process


@pytest.fixture
def cluster(broker: str, clickhouse: EngineProcess, topic_prefix: str) -> Iterator[Cluster]:
    """Topics on the shared broker; workers are killed at the end."""
    cluster = Cluster(broker, clickhouse, topic_prefix)
    cluster.make_topics()
    yield cluster
    cluster.close()
