"""A ClickHouse with a day of everything in it, and the application over it."""

from collections.abc import Iterator

import pytest

from api.reader import Reader
from gnomon.config.model import ClickHouseSettings
from tests.analytics.conftest import clickhouse
from tests.analytics.server import ClickHouse
from tests.api import world
from tests.api.calling import Api, settings_of
from tests.ingest.engine_process import EngineProcess, migrated_engine


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """An engine with the rows of `tests.api.world`."""
    with migrated_engine(tmp_path_factory.mktemp("filled")) as process:
        world.fill(process)
        yield process


@pytest.fixture
def api(filled: EngineProcess) -> Iterator[Api]:
    """The application over it, where no token is asked for."""
    reader = Reader(ClickHouseSettings(url=filled.url), n_connections=2, query_seconds=20)
    settings = settings_of(
        f"{{clickhouse: {{url: '{filled.url}'}}, pricing: {{accounts: {{acme: {{monthlyBudgetUsd: 100}}}}}}}}"
    )
    yield Api(reader, settings, data_dir=filled.folder)
    reader.close()


__all__ = ["ClickHouse", "api", "clickhouse", "filled"]
