"""Mirrored calls that never ended get their verdict, once, and not before their time."""

from collections.abc import Iterator

import pytest

from gnomon.config.model import Failsafe, Project, Quantile, Settings, ShadowPolicy, Upstream
from gnomon.events.contract import AnyEvent
from ingest.batch import decode
from ingest.engine import Engine
from ingest.missing import MissingJob
from ingest.rows import rows_of
from ingest.settings import context, runner_settings
from ingest.sink import Sink
from tests.ingest.engine_process import EngineProcess, migrated_engine
from tests.ingest.events import AT, primary, records, shadow

SECOND = 10**9
AT_MS = AT // 10**6
CONTEXT = context(Settings())


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with migrated_engine(tmp_path_factory.mktemp("engine")) as process:
        yield process


_n_logs = iter(range(1000))


def store(engine: Engine, events: list[AnyEvent]) -> tuple[str, int]:
    """Store events as a log of their own; return its id and next offset."""
    log_id = f"{next(_n_logs):032x}"
    sink = Sink(engine, log_id, "log", 0)
    sink.take_over()
    sink.store(rows_of(decode(0, records(events)), CONTEXT, 0).rows)
    return log_id, sink.next


def job(engine: Engine, log_id: str) -> MissingJob:
    return MissingJob(engine, log_id, "log", 0, 70.0, lambda: AT_MS)


def found(engine: Engine, log_id: str) -> list[list[str]]:
    return engine.rows(
        "SELECT request_id, shadow_upstream, outcome, class, finality, reason, off, topic FROM gnomon_core.comparisons "
        f"WHERE log_id = '{log_id}' AND outcome = 'missing' ORDER BY off"
    )


WORLD: list[AnyEvent] = [
    primary(1, at=AT),
    primary(2, at=AT + SECOND, shadows={"s1": "mirrored", "s2": "mirrored", "s3": "write"}),
    shadow(1, at=AT + 2 * SECOND),
    shadow(2, at=AT + 2 * SECOND),
    primary(3, at=AT + 100 * SECOND, params=b'["latest",false]'),
    primary(4, at=AT + 200 * SECOND, params=b'["0xff",false]'),
]


@pytest.mark.clickhouse
def test_a_call_without_an_end_is_missing_after_its_time(process: EngineProcess) -> None:
    """Request 2 at s2 first, request 3 when it is old enough, each once; s3 was never called."""
    engine = process.connect()
    log_id, stored_next = store(engine, WORLD)
    one = job(engine, log_id)

    assert one.run(stored_next, AT_MS + 70_000) == 0
    assert one.run(stored_next, AT_MS + 71_001) == 1
    assert one.run(stored_next, AT_MS + 71_001) == 0
    assert one.run(stored_next, AT_MS + 170_001) == 1
    assert found(engine, log_id) == [
        ["r2", "s2", "missing", "none", "finalized", "never_ended", "1", "missing"],
        ["r3", "s1", "missing", "none", "realtime", "never_ended", "4", "missing"],
    ]


@pytest.mark.clickhouse
def test_a_restarted_job_adds_nothing_twice(process: EngineProcess) -> None:
    """Its own floors and progress are in the tables."""
    engine = process.connect()
    log_id, stored_next = store(engine, WORLD)
    late = AT_MS + 1_000_000
    assert job(engine, log_id).run(stored_next, late) == 3
    for _ in range(3):
        again = job(engine, log_id)
        assert again.run(stored_next, late) == 0

    assert len(found(engine, log_id)) == 3
    ((n,),) = engine.rows(
        f"SELECT sum(n) FROM gnomon_core.divergence_minutely WHERE log_id = '{log_id}' AND outcome = 'missing'"
    )
    assert n == "3"


@pytest.mark.clickhouse
def test_a_job_that_died_between_its_tables_is_finished_by_the_next(process: EngineProcess) -> None:
    """The comparison is there and its rollup is not: the next owner adds the rollup and not the comparison."""
    engine = process.connect()
    log_id, stored_next = store(engine, WORLD)
    late = AT_MS + 1_000_000

    class Died(Exception):
        pass

    def die(table: str) -> None:
        if table == "comparisons":
            raise Died

    first = job(engine, log_id)
    first._sink._after_insert = die
    with pytest.raises(Died):
        first.run(stored_next, late)
    job(engine, log_id).run(stored_next, late)

    assert len(found(engine, log_id)) == 3
    ((n,),) = engine.rows(
        f"SELECT sum(n) FROM gnomon_core.divergence_minutely WHERE log_id = '{log_id}' AND outcome = 'missing'"
    )
    assert n == "3"


@pytest.mark.clickhouse
def test_missing_rows_are_no_events(process: EngineProcess) -> None:
    """They count neither as accepted nor as stored."""
    engine = process.connect()
    before = engine.rows("SELECT sum(stored) FROM gnomon.reconciliation")
    log_id, stored_next = store(engine, WORLD)
    job(engine, log_id).run(stored_next, AT_MS + 1_000_000)
    after = engine.rows("SELECT sum(stored), sum(distinct_stored) FROM gnomon.reconciliation")

    assert int(after[0][0]) - int(before[0][0]) == len(WORLD)
    assert after[0][0] == after[0][1]


def test_the_longest_timeout_of_a_shadow_decides() -> None:
    """A minute on top; without a timeout the default of ten seconds counts."""

    def settings(*timeouts: object) -> Settings:
        shadow_ = Upstream(
            id="s", network="evm:1", endpoint="", display_endpoint="", tier="shadow", shadow=ShadowPolicy(),
            failsafe=tuple(Failsafe(timeout=t) for t in timeouts),  # type: ignore[arg-type]
        )  # fmt: skip
        slow = Upstream(id="p", network="evm:1", endpoint="", display_endpoint="", failsafe=(Failsafe(timeout=900.0),))
        return Settings(projects=(Project(id="main", upstreams=(shadow_, slow)),))

    assert runner_settings(settings()).missing_horizon_seconds == 70
    assert runner_settings(settings(5.0)).missing_horizon_seconds == 70
    assert runner_settings(settings(30.0, None)).missing_horizon_seconds == 90
    quantile = Quantile(quantile=0.9, min_seconds=1, max_seconds=45)
    assert runner_settings(settings(quantile)).missing_horizon_seconds == 105
