"""The history of alerts, opened with the writer's rights: configured ones, else those of the data folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from analytics.alerting.history import History
from analytics.embedded import credentials
from analytics.migrate import require_schema
from analytics.store import Store
from gnomon.config.model import ClickHouseSettings
from gnomon.errors import GnomonError


def connect(clickhouse: ClickHouseSettings, data_dir: Path) -> Store:
    """
    Return a connection that may write, to a schema that this Gnomon knows.

    Raises:
        StoreError: ClickHouse is away or refuses.
        SchemaBehind, SchemaNewer: the schema is not what this Gnomon needs.
        EmbeddedError: the configured credentials cannot be read.
    """
    writer = credentials.read(data_dir, clickhouse.user, clickhouse.password_file)
    store = Store.connect(
        clickhouse.url, writer.user if writer else "", writer.password if writer else "", database="gnomon_core",
        timeout_seconds=60.0,
    )  # fmt: skip
    try:
        require_schema(store)
    except GnomonError:
        store.close()
        raise
    return store


@contextmanager
def open_history(clickhouse: ClickHouseSettings, data_dir: Path) -> Iterator[History]:
    """Open the history for a moment; raises what `connect` raises."""
    with connect(clickhouse, data_dir) as store:
        yield History(store)
