"""Rows that differ in nothing but their event: each comes once, wherever a page ends."""

from collections.abc import Iterator

import pytest
from msgspec import structs

from api.reader import Reader
from gnomon.config.model import ClickHouseSettings, Settings
from gnomon.events.contract import AnyEvent
from ingest.batch import decode
from ingest.rows import rows_of
from ingest.settings import context
from ingest.sink import Sink
from tests.api.calling import Api, settings_of
from tests.api.world import DAY
from tests.ingest.engine_process import migrated_engine
from tests.ingest.events import AT, breaker, head, records, reorg

pytestmark = pytest.mark.clickhouse

N_TIES = 5


def ties() -> list[AnyEvent]:
    """Return events of one instant, equal but for their ids."""
    found: list[AnyEvent] = []
    for one in (breaker(1), reorg(1), head(1)):
        found += [structs.replace(one, event_id=f"{one.event_id[:-1]}{n}") for n in range(1, N_TIES + 1)]
    return found


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with migrated_engine(tmp_path_factory.mktemp("ties")) as process:
        sink = Sink(process.connect(), "0" * 32, "log", 0)
        sink.take_over()
        sink.store(rows_of(decode(0, records(ties())), context(Settings()), AT // 10**6).rows)
        reader = Reader(ClickHouseSettings(url=process.url), n_connections=2, query_seconds=20)
        yield Api(reader, settings_of(f"{{clickhouse: {{url: '{process.url}'}}}}"), data_dir=process.folder)
        reader.close()


@pytest.mark.parametrize("limit", [1, 2, N_TIES - 1, N_TIES])
@pytest.mark.parametrize("path", ["/v1/breakers/changes", "/v1/reorgs", "/v1/heads/changes"])
def test_each_comes_once(api: Api, path: str, limit: int) -> None:
    """In one order, whatever the length of a page."""
    found: list[str] = []
    more: dict[str, object] = {}
    while True:
        answer = api.get(path, **DAY, limit=limit, **more).json()
        found += [item["event_id"] for item in answer["items"]]
        if answer["next_cursor"] is None:
            break
        assert len(answer["items"]) == limit
        more = {"cursor": answer["next_cursor"]}

    assert len(found) == N_TIES
    assert found == sorted(set(found), reverse=True)
