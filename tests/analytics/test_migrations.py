"""The schema: files as they must be, views as the public interface names them, tables as the sink writes them."""

import importlib.resources
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics import migrate as migrating
from analytics.migrate import (
    LEDGER,
    LOCK,
    Migration,
    SchemaBehind,
    SchemaChanged,
    SchemaLocked,
    SchemaNewer,
    migrate,
    migrations,
    plan,
    require_schema,
    schema_version,
)
from gnomon.config.model import Retention
from ingest.engine import Engine
from ingest.tables import EPOCHS_COLUMNS, PROGRESS_COLUMNS, TABLES
from tests.ingest.engine_process import EngineProcess, migrated_engine

RETENTION = Retention()
N = len(migrations())

VIEWS = {
    "requests": """at, request_id, batch_id, project, network, user, method, block_number, block_tag, outcome,
        error_class, upstream, tier, n_attempts, cause, short_circuited, beyond_head, escaped, duration_us,
        response_bytes, head_latest, head_finalized, agent, params, rpc_id, request_bytes, n_skipped_open,
        reject_reason, answer_kind, answer_hash, event_id, topic, partition, offset""",
    "attempts": """at, attempt_id, request_id, project, user, network, upstream, vendor, account, tier, kind, cause,
        method, outcome, error_class, is_empty, is_cancelled, is_wasted, duration_us, request_bytes,
        response_bytes, units, usd, is_priced, is_estimate, repricing, units_charged, usd_charged, idx, start_us,
        status, error_code, is_duplicate""",
    "shadow_decisions": "at, request_id, network, upstream, method, decision",
    "comparisons": """at, request_id, network, method, primary_upstream, shadow_upstream, outcome, class, finality,
        settled, suspect, block_number, is_emptyish, is_larger, primary_hash, shadow_hash,
        primary_duration_us, shadow_duration_us, mask_version, tolerance_version, n_findings, classes, reason,
        project, user, is_control, n_masked, params, primary_kind, shadow_kind, primary_bytes, shadow_bytes,
        primary_error_class, shadow_error_class, head_latest, head_finalized, primary_head, shadow_head""",
    "findings": """at, request_id, network, method, shadow_upstream, path, generic_path, n_paths, class, primary_value,
        shadow_value""",
    "heads": "at, network, upstream, axis, number, hash, parent_hash, source, event_id",
    "reorgs": "at, network, upstream, number, depth, old_hash, new_hash, event_id",
    "breaker_transitions": "at, network, upstream, from_state, to_state, reason, counters, event_id",
    "alerts": "at, rule, state, subject, value, threshold, delivered",
    "spend_hourly": """hour, project, network, vendor, account, upstream, tier, kind, cause, method, n, n_wasted, units,
        usd, n_unpriced""",
    "divergence_minutely": "minute, network, method, shadow_upstream, outcome, class, finality, n",
    "divergence_parts": "minute, network, method, shadow_upstream, outcome, class, finality, n",
    "health_minutely": "minute, network, upstream, tier, n, n_failed, n_empty, p50_us, p99_us",
    "reconciliation": "hour, accepted, shipped, stored, distinct_stored, dead_lettered",
    "repricings": "run, at, done_at, begins_at, ends_at, n, n_changed, usd_before, usd_after, books",
    "alert_silences": "at, silence_id, rule, subject, starts_at, ends_at, comment, author",
    "gauges": "at, name, subject, value",
    "progress": "log_id, topic, partition, at, next, log_end, dropped",
    "events": "at, type, event_id, proc, seq, topic, partition, offset",
    "bodies": "at, hash, n_bytes, is_head_only, body",
    "dead_letters": "at, topic, partition, offset, reason, detail, bytes",
}
"""The public interface: it may grow, a name is never changed or taken away."""


OF_REPRICING = {("attempts", "repricing"), ("attempts", "former_prices")}
"""What nobody knows when a call is stored: `ingest.repricing` writes it."""


@pytest.mark.parametrize("migration", migrations(), ids=lambda m: m.title)
def test_a_file_is_one_statement_that_may_run_twice(migration: Migration) -> None:
    """One statement, with a comment that says what it is for; a killed migrate runs it again."""
    code = "\n".join(line for line in migration.sql.splitlines() if not line.startswith("--"))

    assert migration.sql.startswith("-- ")
    assert (
        re.match(r"CREATE (TABLE|VIEW|DATABASE) IF NOT EXISTS", code)
        or re.match(
            r"ALTER TABLE gnomon_core\.\w+ ADD COLUMN IF NOT EXISTS [^,(]+(\(.*\))?( AFTER `\w+`)?$", code.strip()
        )
        or "OR REPLACE VIEW" in code
    )
    assert ";" not in code
    assert "MATERIALIZED" not in code
    assert "SELECT *" not in code


def test_a_reader_needs_nothing_but_the_views() -> None:
    """Every view runs with the rights of who made it."""
    views = [m for m in migrations() if m.name.startswith("create_view_")]

    assert set(VIEWS) == {m.name.removeprefix("create_view_") for m in views}
    assert all("SQL SECURITY DEFINER" in m.sql for m in views)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    process = EngineProcess(tmp_path_factory.mktemp("engine"))
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture
def database(process: EngineProcess) -> Engine:
    """An engine without any schema."""
    database = process.connect()
    for name in ("gnomon", "gnomon_core"):
        database.command(f"DROP DATABASE IF EXISTS {name}")
    return database


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with migrated_engine(tmp_path_factory.mktemp("migrated")) as process:
        yield process


def columns(process: EngineProcess, database: str, table: str) -> list[tuple[str, str]]:
    rows = process.connect().rows(
        "SELECT name, type FROM system.columns WHERE database = {d:String} AND table = {t:String} ORDER BY position",
        {"d": database, "t": table},
    )
    return [(name, type_) for name, type_ in rows]


@pytest.mark.clickhouse
@pytest.mark.parametrize("view", VIEWS)
def test_a_views_columns_are_those_of_the_public_interface(migrated: EngineProcess, view: str) -> None:
    """In this order; times in UTC with milliseconds, money as Nullable(Decimal(38, 12))."""
    found = columns(migrated, "gnomon", view)

    assert [name.strip() for name in VIEWS[view].split(",")] == [name for name, _ in found]
    types = dict(found)
    assert all(types[n] == "DateTime64(3, 'UTC')" for n in ("at", "hour", "minute") if n in types)
    assert all(types[n] == "Nullable(Decimal(38, 12))" for n in ("units", "usd") if n in types)


@pytest.mark.clickhouse
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_the_sink_writes(migrated: EngineProcess, name: str) -> None:
    """Every column is written, by its type; the engine only casts to LowCardinality and to aggregate states."""
    table = TABLES[name]
    *own, off = table.columns
    wire = [(c.name, _plain(c.type)) for c in (*own, *table.wire_columns[-3:], off)]
    found = [(n, _plain(t)) for n, t in columns(migrated, "gnomon_core", name)]

    assert wire == [(n, t) for n, t in found if (name, n) not in OF_REPRICING]


@pytest.mark.clickhouse
def test_the_sinks_own_tables_are_what_it_writes(migrated: EngineProcess) -> None:
    """Epochs and progress."""
    for name, wanted in (("sink_epochs", EPOCHS_COLUMNS), ("sink_progress", PROGRESS_COLUMNS)):
        found = [(n, _plain(t)) for n, t in columns(migrated, "gnomon_core", name)]
        assert [(c.name, _plain(c.type)) for c in wanted] == found


@pytest.mark.clickhouse
def test_parts_of_a_minute_add_up_to_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two batches make two rows of one group: one row by the minute, two as they were added up, the same sum."""
    with migrated_engine(tmp_path_factory.mktemp("parts")) as process:
        engine = process.connect()
        for off, n in ((1, 2), (2, 5)):
            engine.command(
                "INSERT INTO gnomon_core.divergence_minutely (minute, network, method, shadow_upstream, outcome, class,"
                " finality, n, log_id, topic, part, off) VALUES ('2026-09-21 10:00:00', 'evm:1', 'eth_call', 's1',"
                f" 'identical', 'none', 'finalized', {n}, 'l{off}', 'log', 0, {off})"
            )
        grouped = engine.rows("SELECT n FROM gnomon.divergence_minutely")
        parts = engine.rows("SELECT n FROM gnomon.divergence_parts ORDER BY n")

    assert [int(row[0]) for row in grouped] == [7]
    assert [int(row[0]) for row in parts] == [2, 5]


def _plain(type_: str) -> str:
    type_ = re.sub(r"^SimpleAggregateFunction\(\w+, (.*)\)$", r"\1", type_)
    return type_.replace("LowCardinality(String)", "String")


@pytest.mark.clickhouse
def test_partitions_are_those_that_the_sink_reckons_with(migrated: EngineProcess) -> None:
    """The sink's floors are per partition: a table that is partitioned otherwise would lose or double rows."""
    rows = dict(migrated.connect().rows("SELECT name, partition_key FROM system.tables WHERE database = 'gnomon_core'"))

    for name, table in TABLES.items():
        assert table.partition_sql in (f"toUInt32({rows[name]})", rows[name], "toUInt32(0)" if not rows[name] else "")


@pytest.mark.clickhouse
def test_events_tables_merge_late(migrated: EngineProcess) -> None:
    """min_parts_to_merge_at_once = 20: at many small inserts the default rewrites each row three times as often."""
    rows = dict(
        migrated.connect().rows("SELECT name, create_table_query FROM system.tables WHERE database = 'gnomon_core'")
    )

    assert all("min_parts_to_merge_at_once = 20" in rows[name] for name in TABLES)


@pytest.mark.clickhouse
def test_an_empty_server_gets_the_schema_and_a_second_run_does_nothing(database: Engine) -> None:
    """Before: behind, with the command to run. After: the version that this Gnomon needs."""
    with pytest.raises(SchemaBehind, match="run `gnomon migrate`"):
        require_schema(database)
    foretold = plan(database, RETENTION)

    assert migrate(database, RETENTION) == N
    require_schema(database)
    assert schema_version(database) == N
    assert plan(database, RETENTION) == []
    assert migrate(database, RETENTION) == 0
    assert [m.sql.strip() for m in migrations()] == [s for s in foretold if not s.startswith("ALTER")][2:]


@pytest.mark.clickhouse
def test_retention_becomes_the_ttl_and_follows_the_settings(database: Engine) -> None:
    """Rows, bodies and rollups each have their own; a change is applied by the next migrate."""
    migrate(database, Retention(rows_seconds=3600, bodies_seconds=60, rollups_seconds=86_400))

    def ttl(table: str) -> str:
        ((query,),) = database.rows(
            f"SELECT create_table_query FROM system.tables WHERE database = 'gnomon_core' AND name = '{table}'"
        )
        return query

    assert "toIntervalSecond(3600)" in ttl("requests")
    assert "toIntervalSecond(60)" in ttl("bodies")
    assert "toIntervalSecond(86400)" in ttl("spend_hourly")
    migrate(database, Retention(rows_seconds=7200, bodies_seconds=60, rollups_seconds=86_400))
    assert "toIntervalSecond(7200)" in ttl("requests")


@pytest.mark.clickhouse
def test_a_step_that_was_killed_runs_again(database: Engine) -> None:
    """In progress in the ledger: the statement may or may not have run."""
    migrate(database, RETENTION)
    database.command(
        f"ALTER TABLE {LEDGER} DELETE WHERE number = {N} AND state = 'completed' SETTINGS mutations_sync = 2"
    )

    assert schema_version(database) == N - 1
    assert migrate(database, RETENTION) == 1
    assert schema_version(database) == N


@pytest.mark.clickhouse
def test_an_edited_file_is_refused(database: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ran is not what the file says: nobody knows what the table is."""
    migrate(database, RETENTION)
    edited = (*migrations()[:-1], Migration(N, migrations()[-1].name, migrations()[-1].sql + "\n-- edited"))
    monkeypatch.setattr(migrating, "migrations", lambda: edited)

    with pytest.raises(SchemaChanged, match=edited[-1].title):
        migrate(database, RETENTION)


@pytest.mark.clickhouse
def test_a_newer_schema_is_refused_by_all(database: Engine) -> None:
    """An older Gnomon neither migrates nor works on it."""
    migrate(database, RETENTION)
    database.command(f"INSERT INTO {LEDGER} (number, name, state, checksum) VALUES (9999, 'x', 'completed', 'c')")

    with pytest.raises(SchemaNewer, match="upgrade"):
        migrate(database, RETENTION)
    with pytest.raises(SchemaNewer, match="upgrade Gnomon"):
        require_schema(database)


@pytest.mark.clickhouse
def test_one_migrates_at_a_time(database: Engine) -> None:
    """A living holder is waited for; a dead one's lock is taken over after its lease."""
    migrate(database, RETENTION)
    database.command(f"ALTER TABLE {LEDGER} DELETE WHERE number = {N} SETTINGS mutations_sync = 2")
    database.command(
        f"CREATE TABLE {LOCK} (`owner` String, `at` DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')) "
        "ENGINE = MergeTree ORDER BY at"
    )
    database.command(f"INSERT INTO {LOCK} (owner) VALUES ('somebody')")

    with pytest.raises(SchemaLocked, match="sign of life"):
        migrate(database, RETENTION, wait_seconds=0.3)


@pytest.mark.clickhouse
def test_the_lock_of_a_dead_holder_is_broken(database: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed migrate must not stop every later one."""
    migrate(database, RETENTION)
    database.command(f"ALTER TABLE {LEDGER} DELETE WHERE number = {N} SETTINGS mutations_sync = 2")
    database.command(f"CREATE TABLE {LOCK} (`owner` String, `at` DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY at")
    monkeypatch.setattr(migrating, "LEASE_SECONDS", -1.0)
    told: list[str] = []

    assert migrate(database, RETENTION, report=told.append) == 1
    assert any("taking over" in line for line in told)
    assert not database.rows("SELECT name FROM system.tables WHERE database = 'gnomon_core' AND name LIKE '%lock%'")


def test_files_are_numbered_without_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap, a doubled number or a name of another form is a mistake of whoever added it."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    monkeypatch.setattr(importlib.resources, "files", lambda name: tmp_path)
    (folder / "0001_create_x.sql").write_text("SELECT 1")
    (folder / "0003_create_y.sql").write_text("SELECT 1")
    with pytest.raises(ValueError, match=r"\[1, 3\]"):
        migrations()
    (folder / "0003_create_y.sql").unlink()
    (folder / "2_y.sql").write_text("SELECT 1")

    with pytest.raises(ValueError, match="NNNN_verb_noun"):
        migrations()
