"""A ClickHouse that holds the night, and the dashboard over it, its clock standing at the night's end."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from analytics.alerting.rules import configured
from analytics.store import Store
from api.asking import Asking
from api.reader import Reader
from api.state import Holder
from gnomon.config.model import ClickHouseSettings
from tests.api.calling import Api
from tests.api.night import Night, settings
from tests.api.pages.full import Full, FullNight
from tests.api.pages.reading import Site
from tests.ingest.engine_process import EngineProcess, migrated_engine


@pytest.fixture(scope="session")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EngineProcess, Night]]:
    """The engine and what is in it."""
    with migrated_engine(tmp_path_factory.mktemp("night")) as process:
        made = Night(datetime.now(UTC), dense_seconds=12, sparse_seconds=600)
        made.store(process.connect())
        yield process, made


@pytest.fixture(scope="session")
def site(night: tuple[EngineProcess, Night]) -> Iterator[Site]:
    """The dashboard over the night."""
    with over(*night) as found:
        yield found


@contextmanager
def over(process: EngineProcess, made: Night) -> Iterator[Site]:
    """Open the dashboard over an engine, its clock standing at the night's end."""
    reader = Reader(ClickHouseSettings(url=process.url), n_connections=4, query_seconds=20)
    api = Api(reader, settings(process.url), data_dir=process.folder, rules=tuple(configured((), Path(), [])))
    holder: Holder = api.services.holder
    api.services.asking = Asking(reader, lambda: holder.value.settings.gnomon.pricing.accounts, lambda: made.now)
    yield Site(api, made)
    reader.close()


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Full]:
    """The dashboard over a store with something of everything."""
    with migrated_engine(tmp_path_factory.mktemp("full")) as process:
        made = FullNight(_well_in_a_month(datetime.now(UTC)), dense_seconds=12, sparse_seconds=600)
        made.store(process.connect())
        with over(process, made) as found, Store.connect(process.url) as store:
            yield Full(found, store)


def _well_in_a_month(now: datetime) -> datetime:
    """Return this moment, or the last ones of the month before: minutes after its beginning a month has no numbers."""
    begin = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return now if now - begin > timedelta(hours=1) else begin - timedelta(seconds=1)
