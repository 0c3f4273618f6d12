"""One embedded ClickHouse for the tests that share one; a test that kills it starts its own."""

from collections.abc import Iterator

import pytest

from analytics.migrate import migrate
from gnomon.config.model import Retention
from tests.analytics.server import ClickHouse


@pytest.fixture(scope="session")
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClickHouse]:
    """An engine with the schema, for the whole session; tests make tables of their own in it."""
    server = ClickHouse(tmp_path_factory.mktemp("clickhouse"))
    server.start()
    try:
        with server.store() as store:
            migrate(store, Retention())
        yield server
    finally:
        server.stop()
