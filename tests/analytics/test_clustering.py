"""On a cluster the same migrations make replicated and distributed tables."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.clustering import LOCAL, SHARDING_KEY, Cluster, NotForClusters, sharded_tables, statements
from analytics.migrate import LEDGER, TIME_COLUMN, SchemaElsewhere, check_form, migrate, migrations, plan, whole
from gnomon.config.model import Retention
from ingest import engine as sink_engine
from ingest.engine import Engine, Mark, literal
from ingest.sink import Sink
from ingest.tables import TABLES
from tests.analytics.bare_engine import run
from tests.ingest.engine_process import EngineProcess

PROD = Cluster("prod", "writer")
SHARDED = sharded_tables(m.sql for m in migrations())
RETENTION = Retention()
ON = " ON CLUSTER 'prod'"

TABLE = "CREATE TABLE IF NOT EXISTS gnomon_core.{}\n(\n    {}\n)\nENGINE = {}\nORDER BY a\nSETTINGS s = 1"
KEYED = "`log_id` String,\n    `part` UInt16"
CASES = {
    "database": ("CREATE DATABASE IF NOT EXISTS d", [f"CREATE DATABASE IF NOT EXISTS d{ON}"]),
    "sharded": (
        TABLE.format("t", KEYED, "MergeTree"),
        [
            TABLE.format(
                f"t_local{ON}",
                KEYED,
                "ReplicatedMergeTree('/clickhouse/gnomon/prod/{shard}/t_local', '{replica}')",
            ),
            f"CREATE TABLE IF NOT EXISTS gnomon_core.t{ON} AS gnomon_core.t_local\n"
            "ENGINE = Distributed('prod', 'gnomon_core', 't_local', cityHash64(log_id) + part)",
        ],
    ),
    "everywhere": (
        TABLE.format("t", "`a` String", "ReplacingMergeTree(at)"),
        [
            TABLE.format(
                f"t{ON}",
                "`a` String",
                "ReplicatedReplacingMergeTree('/clickhouse/gnomon/prod/all/t', '{shard}-{replica}', at)",
            )
        ],
    ),
    "the sink's own": (
        TABLE.format("sink_epochs", KEYED, "MergeTree"),
        [
            TABLE.format(
                f"sink_epochs{ON}",
                KEYED,
                "ReplicatedMergeTree('/clickhouse/gnomon/prod/all/sink_epochs', '{shard}-{replica}')",
            )
        ],
    ),
    "column of a sharded table": (
        "ALTER TABLE gnomon_core.requests ADD COLUMN IF NOT EXISTS `a` Map(String, String)",
        [
            f"ALTER TABLE gnomon_core.{name}{ON} ADD COLUMN IF NOT EXISTS `a` Map(String, String)"
            for name in ("requests_local", "requests")
        ],
    ),
    "column of another": (
        "ALTER TABLE gnomon_core.alerts ADD COLUMN IF NOT EXISTS `a` String",
        [f"ALTER TABLE gnomon_core.alerts{ON} ADD COLUMN IF NOT EXISTS `a` String"],
    ),
    "view": (
        "CREATE OR REPLACE VIEW gnomon.v\nDEFINER = CURRENT_USER SQL SECURITY DEFINER AS\nSELECT 1",
        [f"CREATE OR REPLACE VIEW gnomon.v{ON}\nDEFINER = `writer` SQL SECURITY DEFINER AS\nSELECT 1"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_statement_for_one_server_becomes_those_for_many(name: str) -> None:
    """Its comment goes with each of them."""
    sql, wanted = CASES[name]

    assert statements(f"-- why\n-- and how\n{sql}\n", PROD, SHARDED) == [f"-- why\n-- and how\n{s}" for s in wanted]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE gnomon_core.t",
        "CREATE TABLE IF NOT EXISTS gnomon_core.t (`a` String) ENGINE = Memory",
        "ALTER TABLE gnomon_core.requests DROP COLUMN a",
        "CREATE VIEW IF NOT EXISTS gnomon.v AS SELECT 1",
    ],
)
def test_a_form_that_is_not_known_is_refused(sql: str) -> None:
    """Nobody finds out on a cluster that a migration was forgotten there; a view without its definer is one."""
    with pytest.raises(NotForClusters):
        statements(sql, PROD, SHARDED)


@pytest.mark.parametrize("name", ["", "a'b", "a b", "1a", "a" * 101])
def test_a_name_that_would_need_quoting_is_no_cluster(name: str) -> None:
    """It stands in every statement."""
    with pytest.raises(ValueError, match="cannot be the name"):
        Cluster(name)


def test_the_sinks_tables_are_spread_and_no_others() -> None:
    """All that name their log, but the two that each insert and each take-over asks."""
    assert set(TABLES) == SHARDED


def test_rows_of_one_key_lie_on_one_shard() -> None:
    """
    The sharding key is a function of the sink's key, so an insert goes to one shard whole; and of nothing that differs
    between a request and its mirrored answers, which Kafka keeps in one partition. `missing` verdicts of a log have its
    id and partition too.
    """
    assert set(re.findall(r"\b[a-z_]+\b(?!\()", SHARDING_KEY)) == {"log_id", "part"}
    assert sink_engine.LOCAL == LOCAL


def test_all_that_makes_or_changes_something_goes_to_every_server() -> None:
    """One statement without it would leave a table on one server only."""
    found = whole(RETENTION, PROD)

    assert all(ON in statement for statement in found)
    assert sum("MODIFY TTL" in statement for statement in found) == len(TIME_COLUMN)
    assert not any(re.search(rf"ALTER TABLE gnomon_core\.({'|'.join(SHARDED)}){ON} MODIFY TTL", s) for s in found)
    assert whole(RETENTION)[2:] == [*(m.sql.strip() for m in migrations()), *whole(RETENTION)[2 + len(migrations()) :]]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    process = EngineProcess(tmp_path_factory.mktemp("engine"))
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.mark.clickhouse
def test_the_engine_parses_every_statement(process: EngineProcess) -> None:
    """ClickHouse's own parser, and what it prints again still has the cluster, the engine and the definer."""
    engine = process.connect()
    for statement in whole(RETENTION, PROD):
        ((printed,),) = engine.rows(f"SELECT formatQuerySingleLine({literal(statement)})")
        assert "ON CLUSTER" in printed
        for part in ("Replicated", "Distributed(", "DEFINER = writer"):
            assert (part in statement.replace("`", "")) == (part in printed.replace("`", ""))


class Telling(Engine):
    """Keeps the statements that a sink would send to a cluster."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1", fence="statement", cluster="prod")
        self.said: list[str] = []

    def _post(self, statement: str, body: bytes, query: object, headers: dict[str, str] | None = None) -> bytes:
        for name, value in dict(query).items() if isinstance(query, dict) else ():
            statement = statement.replace(f"{{{name.removeprefix('param_')}:String}}", f"'{value}'")
        self.said.append(statement)
        if statement.startswith("SELECT proc") or "UNION ALL" in statement or "processes" in statement:
            return b""
        return b"0\n"


@pytest.mark.clickhouse
def test_a_new_owner_asks_every_replica(process: EngineProcess) -> None:
    """
    A replica may be behind: epochs, progress and floors are the greatest of all replicas', and the process lists of all
    are looked at once every server has the new epoch. Each statement is one that the engine parses.
    """
    engine = Telling()
    Sink(engine, "ab", "t", 3, has_repetitions=True).take_over()
    asked = [said for said in engine.said if not said.startswith("/*fence")]
    parser = process.connect()
    for said in engine.said:
        parser.rows(f"SELECT formatQuerySingleLine({literal(said)})")

    assert len(engine.said) == 7
    assert all("FROM clusterAllReplicas('prod', '" in said for said in asked)
    assert sum(f"'{name}_local')" in asked[-1] for name in TABLES) == len(TABLES)
    assert not re.search(r"FROM gnomon_core\.", " ".join(asked))
    assert engine.said.index(next(s for s in asked if "hostName()" in s)) < engine.said.index(
        next(s for s in asked if "'processes'" in s)
    )


def test_a_guarded_insert_is_answered_when_the_shard_has_it() -> None:
    """Not when it waits for the shard in a folder of the server that took it."""
    seen: dict[str, str] = {}

    class Keeping(Telling):
        def _post(self, statement: str, body: bytes, query: object, headers: dict[str, str] | None = None) -> bytes:
            assert isinstance(query, dict)
            seen.update(query)
            return b""

    table = TABLES["reorgs"]
    Keeping().insert("reorgs", table.wire_columns[:1], [[0]], Mark("ab", "t", 0, 1))

    assert seen == {"async_insert": "0", "distributed_foreground_insert": "1"}


KEEPER = """<clickhouse>
 <timezone>UTC</timezone>
 <macros><shard>1</shard><replica>r1</replica></macros>
 <zookeeper><implementation>testkeeper</implementation></zookeeper>
 <remote_servers><prod><shard><replica><host>127.0.0.1</host><port>1</port></replica></shard></prod></remote_servers>
</clickhouse>"""
REPLICATED = re.compile(r"Replicated(\w*MergeTree)\('[^']*', '[^']*'(?:, )?")


@pytest.mark.clickhouse
def test_the_engine_makes_what_it_can_of_the_clusters_schema(tmp_path: Path) -> None:
    """
    Without ON CLUSTER, which needs servers: every replicated and distributed table is made, Keeper being the engine's
    own for tests. A replica there stays read-only: it takes no further column, and so no view that shows one.
    """
    made = [s.replace(ON, "") for s in whole(RETENTION, PROD) if "ALTER TABLE" not in s and " VIEW " not in s]
    *answers, (engines, _) = run(
        tmp_path,
        KEEPER,
        [*made, "SELECT engine, count() FROM system.tables WHERE database LIKE 'gnomon%' GROUP BY engine"],
    )
    wanted = Counter(re.findall(r"\nENGINE = (\w+)", "\n".join(made)))

    assert [error for _, error in answers if error] == []
    assert wanted == {engine: int(n) for engine, n in (line.split("\t") for line in engines.splitlines())}
    assert wanted["Distributed"] == len(SHARDED)


@pytest.mark.clickhouse
def test_after_all_migrations_each_table_and_view_has_the_columns_that_it_has_on_one_server(tmp_path: Path) -> None:
    """Unreplicated and without ON CLUSTER all of it runs: a distributed table is not left behind by a new column."""
    columns = (
        "SELECT database, table, name, type FROM system.columns WHERE database IN ('gnomon_core', 'gnomon') "
        "AND table != 'schema_migrations' ORDER BY database, table, position"
    )
    on_many = [
        REPLICATED.sub(r"\1(", s.replace(ON, "").replace("DEFINER = `writer`", "DEFINER = CURRENT_USER"))
        for s in whole(RETENTION, PROD)
    ]
    (tmp_path / "many").mkdir()
    (tmp_path / "one").mkdir()
    *answers, (many, _) = run(tmp_path / "many", KEEPER, [*on_many, columns])
    *others, (one, _) = run(tmp_path / "one", KEEPER, [*whole(RETENTION), columns])

    assert [error for _, error in [*answers, *others] if error] == []
    rows = [line.split("\t") for line in many.splitlines()]
    assert [row for row in rows if not row[1].endswith(LOCAL)] == [line.split("\t") for line in one.splitlines()]
    for name in SHARDED:
        local = [row[2:] for row in rows if row[:2] == ["gnomon_core", name + LOCAL]]
        assert local == [row[2:] for row in rows if row[:2] == ["gnomon_core", name]]


@pytest.mark.clickhouse
def test_a_server_without_the_cluster_says_what_is_lacking(process: EngineProcess) -> None:
    """Before anything is made."""
    with pytest.raises(SchemaElsewhere, match="knows no cluster 'prod'"):
        plan(process.connect(), RETENTION, PROD)


@pytest.mark.clickhouse
def test_tables_of_one_server_are_not_taken_for_a_clusters(process: EngineProcess) -> None:
    """The ledger names the same migrations in both forms; its engine tells them apart."""
    engine = process.connect()
    migrate(engine, RETENTION)
    try:
        with pytest.raises(SchemaElsewhere, match="made for one server"):
            check_form(engine, PROD)
        engine.command(f"DROP TABLE {LEDGER} SYNC")
    finally:
        for name in ("gnomon", "gnomon_core"):
            engine.command(f"DROP DATABASE IF EXISTS {name}")
