"""
The ClickHouse schema: numbered files, a ledger of what ran, a lock, and retention as TTL.

A migration is one statement in `migrations/NNNN_verb_noun.sql`, written so that it may run twice. The ledger
(`gnomon_core.schema_migrations`) has one row per start and one per end of each; a migration that started and never
ended runs again. Merged files never change: a file whose checksum is not the ledger's is refused.

    state of number N            then `migrate`
    no row                       runs it
    in_progress                  runs it again (an earlier run was killed)
    completed, same checksum     nothing
    completed, other checksum    SchemaChanged
    completed, no such file      SchemaNewer (an older Gnomon meets a newer schema)

Comments of views and their columns are no migrations either: `analytics.views` has them.

The lock is the table `gnomon_core.migration_lock`: creating it is atomic. Its holder writes a sign of life with every
migration that takes long; a lock without one for `LEASE_SECONDS` was left by a killed process and is taken over.

On a cluster each migration becomes the statements of `analytics.clustering`, from the same files; ledger and lock are
tables that every server has. Statements for all servers run in one order everywhere, so creating the lock is atomic
there too.
"""

import hashlib
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Protocol

from analytics import views
from analytics.clustering import LOCAL, Cluster, sharded_tables, statements
from gnomon.config.model import Retention
from gnomon.errors import GnomonError

DATABASE = "gnomon_core"
LEDGER = f"{DATABASE}.schema_migrations"
LOCK = f"{DATABASE}.migration_lock"
LEASE_SECONDS = 60.0

_NAME = re.compile(r"(\d{4})_([a-z]+(?:_[a-z0-9]+)+)\.sql")
_CREATE_DATABASE = f"CREATE DATABASE IF NOT EXISTS {DATABASE}"
_CREATE_LEDGER = f"""CREATE TABLE IF NOT EXISTS {LEDGER}
(
    `number` UInt32,
    `name` String,
    `state` LowCardinality(String),
    `checksum` String,
    `at` DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY (number, at)"""
_CREATE_LOCK = f"""CREATE TABLE {LOCK}
(
    `owner` String,
    `at` DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY at"""

TIME_COLUMN: Mapping[str, str] = {
    **dict.fromkeys(
        ("requests", "attempts", "shadow_decisions", "comparisons", "findings", "heads", "reorgs",
         "breaker_transitions", "alerts", "alert_deliveries", "alert_silences", "gauges", "dead_letters",
         "bodies"), "at"),
    "spend_hourly": "hour",
    "divergence_minutely": "minute",
    "health_minutely": "minute",
}  # fmt: skip
"""Tables that have a retention, with the column that their rows age by."""

ROLLUPS = frozenset({"spend_hourly", "divergence_minutely", "health_minutely"})


class SchemaError(GnomonError):
    """
    The schema is not what this Gnomon needs.

        SchemaError
        ├── SchemaBehind     run `gnomon migrate`
        ├── SchemaNewer      this Gnomon is older than the schema
        ├── SchemaChanged    a merged migration file was edited
        ├── SchemaElsewhere  the tables are for one server and a cluster is configured, or the other way round
        └── SchemaLocked     another `gnomon migrate` is at work
    """


class SchemaBehind(SchemaError):
    """Migrations are missing."""


class SchemaNewer(SchemaError):
    """The ledger names migrations that this Gnomon does not have."""


class SchemaChanged(SchemaError):
    """A migration that ran is not the file of that number."""


class SchemaElsewhere(SchemaError):
    """The tables that are there are of the other form, or the servers are not set up for it."""


class SchemaLocked(SchemaError):
    """The lock was not free in time."""


class Database(Protocol):
    """What migrating needs of a connection with the writer's rights; `analytics.store.Store` has it."""

    def command(self, sql: str, parameters: Mapping[str, object] | None = None) -> object:
        """Run one statement that gives no rows; raises what the driver raises."""

    def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> Sequence[Sequence[object]]:
        """Return the rows of a query."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """32 hex digits over the file's text."""
        return hashlib.blake2b(self.sql.encode(), digest_size=16).hexdigest()

    @property
    def is_blocking(self) -> bool:
        """Whether it rewrites data: such a file says so in a line `-- blocking: why`."""
        return bool(re.search(r"(?m)^-- blocking:", self.sql))

    @property
    def title(self) -> str:
        """`NNNN_name`, as the file is called."""
        return f"{self.number:04d}_{self.name}"


def migrations() -> tuple[Migration, ...]:
    """
    Return the shipped migrations in order.

    Raises:
        ValueError: a file's name is not NNNN_verb_noun.sql, or the numbers are not 1, 2, 3 and so on.
    """
    found = []
    for entry in (resources.files("analytics") / "migrations").iterdir():
        if not entry.name.endswith(".sql"):
            continue
        match = _NAME.fullmatch(entry.name)
        if not match:
            raise ValueError(f"analytics/migrations/{entry.name}: the name is not NNNN_verb_noun.sql")
        found.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    found.sort(key=lambda m: m.number)
    if [m.number for m in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"analytics/migrations: numbers are not 1 to {len(found)}: {[m.number for m in found]}")
    return tuple(found)


def ledger(database: Database) -> dict[int, tuple[str, str]]:
    """Return number → (state, checksum) of the newest row each; empty where there is no schema at all."""
    if not _table_exists(database, "schema_migrations"):
        return {}
    rows = database.rows(
        f"SELECT number, argMax(state, (at, state = 'completed')), argMax(checksum, at) FROM {LEDGER} GROUP BY number"
    )
    return {int(str(number)): (str(state), str(checksum)) for number, state, checksum in rows}


def schema_version(database: Database) -> int:
    """Return the number of the last migration of the unbroken row of completed ones; 0 where there is none."""
    done = ledger(database)
    version = 0
    while done.get(version + 1, ("", ""))[0] == "completed":
        version += 1
    return version


def require_schema(database: Database) -> None:
    """
    Return if the schema is exactly what this Gnomon was built for.

    Raises:
        SchemaBehind: with the command to run.
        SchemaNewer: with the way out.
    """
    wanted = len(migrations())
    seen = ledger(database)
    newest = max(seen, default=0)
    if newest > wanted:
        raise SchemaNewer(
            f"the ClickHouse schema is at version {newest}, this Gnomon knows {wanted}: "
            "upgrade Gnomon, or use the data folder of the older version"
        )
    version = schema_version(database)
    if version < wanted:
        raise SchemaBehind(
            f"the ClickHouse schema is at version {version}, this Gnomon needs {wanted}: run `gnomon migrate`"
        )


def pending(database: Database, known: Sequence[Migration]) -> list[Migration]:
    """
    Return what is still to run, in order.

    Raises:
        SchemaNewer, SchemaChanged: nothing may run.
    """
    seen = ledger(database)
    if unknown := sorted(set(seen) - {m.number for m in known}):
        raise SchemaNewer(
            f"the ClickHouse schema has migration {unknown[-1]:04d}, this Gnomon ends at {len(known):04d}: upgrade it"
        )
    for migration in known:
        state, checksum = seen.get(migration.number, ("", ""))
        if state == "completed" and checksum != migration.checksum:
            raise SchemaChanged(
                f"migration {migration.title} ran with other text than this file has "
                f"(checksum {checksum}, file {migration.checksum}): merged migrations never change, add a new one"
            )
    return [m for m in known if seen.get(m.number, ("", ""))[0] != "completed"]


def retention_statements(database: Database, retention: Retention, cluster: Cluster | None = None) -> list[str]:
    """Return the ALTER statements that bring the TTL of each table to the settings."""
    queries = {
        str(name): str(query)
        for name, query in database.rows(
            f"SELECT name, create_table_query FROM system.tables WHERE database = '{DATABASE}'"
        )
    }
    statements = []
    for table, column in TIME_COLUMN.items():
        query = queries.get(_stored_in(table, cluster))
        if query is not None and f"+ toIntervalSecond({_seconds(table, retention)})" not in query:
            statements.append(_ttl(table, column, retention, cluster))
    return statements


def _stored_in(table: str, cluster: Cluster | None) -> str:
    """Return the table that has the rows."""
    return table + LOCAL if cluster and table in sharded_tables(m.sql for m in migrations()) else table


def _seconds(table: str, retention: Retention) -> int:
    if table in ROLLUPS:
        return int(retention.rollups_seconds)
    return int(retention.bodies_seconds if table == "bodies" else retention.rows_seconds)


def _ttl(table: str, column: str, retention: Retention, cluster: Cluster | None) -> str:
    seconds = _seconds(table, retention)
    everywhere = f" {cluster.on}" if cluster else ""
    return (
        f"ALTER TABLE {DATABASE}.{_stored_in(table, cluster)}{everywhere} "
        f"MODIFY TTL toDateTime({column}) + toIntervalSecond({seconds})"
    )


def _placed(sql: str, cluster: Cluster | None, known: Sequence[Migration] = ()) -> list[str]:
    """Return the statements that a statement for one server becomes."""
    return [sql.strip()] if cluster is None else statements(sql, cluster, sharded_tables(m.sql for m in known))


def plan(database: Database, retention: Retention, cluster: Cluster | None = None) -> list[str]:
    """Return exactly the statements that `migrate` would run on this database, in order; changes nothing."""
    known = migrations()
    check_form(database, cluster)
    todo = pending(database, known)
    found = []
    if not _table_exists(database, "schema_migrations"):
        found += [*_placed(_CREATE_DATABASE, cluster), *_placed(_CREATE_LEDGER, cluster)]
    for migration in todo:
        found += _placed(migration.sql, cluster, known)
    fresh = {m.name.removeprefix("create_") for m in todo}
    found += [_ttl(t, c, retention, cluster) for t, c in TIME_COLUMN.items() if t in fresh]
    found += retention_statements(database, retention, cluster)
    return list(dict.fromkeys(found + (views.statements(cluster) if todo else views.outdated(database, cluster))))


def whole(retention: Retention, cluster: Cluster | None = None) -> list[str]:
    """Return every statement of the schema, as empty servers get it."""
    known = migrations()
    found = [*_placed(_CREATE_DATABASE, cluster), *_placed(_CREATE_LEDGER, cluster)]
    for migration in known:
        found += _placed(migration.sql, cluster, known)
    fresh = {m.name.removeprefix("create_") for m in known}
    found += [_ttl(t, c, retention, cluster) for t, c in TIME_COLUMN.items() if t in fresh]
    return found + views.statements(cluster)


def check_form(database: Database, cluster: Cluster | None) -> None:
    """
    Return if the tables that are there, if any, are of the form that is wanted, and the servers ready for it.

    Raises:
        SchemaElsewhere: with the way out.
    """
    engines = database.rows(
        f"SELECT engine FROM system.tables WHERE database = '{DATABASE}' AND name = 'schema_migrations'"
    )
    if engines and str(engines[0][0]).startswith("Replicated") != (cluster is not None):
        raise SchemaElsewhere(
            f"the tables at {DATABASE} were made for one server, gnomon.clickhouse.cluster is {cluster.name!r}: "
            "begin with empty servers, or leave it out"
            if cluster
            else f"the tables at {DATABASE} were made for a cluster: set gnomon.clickhouse.cluster"
        )
    if cluster is None or engines:
        return
    shards = database.rows(
        "SELECT shard_num, count() FROM system.clusters WHERE cluster = {name:String} GROUP BY shard_num",
        {"name": cluster.name},
    )
    if not shards:
        raise SchemaElsewhere(f"ClickHouse knows no cluster {cluster.name!r} (system.clusters, remote_servers)")
    macros = {str(row[0]) for row in database.rows("SELECT macro FROM system.macros")}
    if lacking := {"shard", "replica"} - macros:
        raise SchemaElsewhere(
            f"ClickHouse has no macro {', '.join(sorted(lacking))} (system.macros): each server's own"
        )


def migrate(
    database: Database,
    retention: Retention,
    *,
    cluster: Cluster | None = None,
    report: Callable[[str], None] = lambda line: None,
    wait_seconds: float = 120.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """
    Bring the schema up to date; return how many migrations ran.

    Args:
        database: a connection with the writer's rights.
        retention: becomes the TTL of the tables.
        cluster: where the tables lie; None = on the one server.
        report: is told each step in one line.
        wait_seconds: how long to wait for another migrating process.

    Raises:
        SchemaError: see there. What the driver raises passes through; what had run by then is in the ledger.
    """
    known = migrations()
    check_form(database, cluster)
    if not _table_exists(database, "schema_migrations"):
        for statement in (*_placed(_CREATE_DATABASE, cluster), *_placed(_CREATE_LEDGER, cluster)):
            database.command(statement)
    elif not (
        pending(database, known)
        or retention_statements(database, retention, cluster)
        or views.outdated(database, cluster)
    ):
        return 0
    lock = _Lock(database, cluster, clock)
    lock.take(wait_seconds, sleep, report)
    try:
        todo = pending(database, known)
        for migration in todo:
            report(f"{migration.title}{' (blocking)' if migration.is_blocking else ''}")
            lock.keep(is_long=migration.is_blocking)
            _note(database, migration, "in_progress")
            for statement in _placed(migration.sql, cluster, known):
                database.command(statement)
            _note(database, migration, "completed")
        for statement in retention_statements(database, retention, cluster):
            report(statement)
            database.command(statement)
        for statement in views.outdated(database, cluster):
            database.command(statement)
        return len(todo)
    finally:
        lock.give_back()


def _note(database: Database, migration: Migration, state: str) -> None:
    database.command(
        f"INSERT INTO {LEDGER} (number, name, state, checksum) VALUES "
        f"({migration.number}, '{migration.name}', '{state}', '{migration.checksum}')"
    )


def _table_exists(database: Database, name: str) -> bool:
    return bool(database.rows(f"SELECT 1 FROM system.tables WHERE database = '{DATABASE}' AND name = '{name}'"))


class _Lock:
    """The lock of one migrating process."""

    def __init__(self, database: Database, cluster: Cluster | None, clock: Callable[[], float]) -> None:
        self._database = database
        self._cluster = cluster
        self._clock = clock
        self._owner = uuid.uuid4().hex
        self._signed_at = 0.0

    def take(self, wait_seconds: float, sleep: Callable[[float], None], report: Callable[[str], None]) -> None:
        """
        Wait for it and take it; a dead holder's is broken.

        Raises:
            SchemaLocked: it was not free in time.
        """
        deadline = self._clock() + wait_seconds
        told = False
        while True:
            if not _table_exists(self._database, "migration_lock"):
                try:
                    for statement in _placed(_CREATE_LOCK, self._cluster):
                        # A place in Keeper of its own: that of a lock that was dropped is free only later.
                        self._database.command(statement.replace("/migration_lock'", f"/lock_{self._owner}'"))
                except Exception:
                    # Creating is the atomic step: when it fails and the lock is there, somebody else was first.
                    if not _table_exists(self._database, "migration_lock"):
                        raise
                else:
                    self._sign()
                    return
            age = self._age_seconds()
            if age is not None and age > LEASE_SECONDS:
                report(f"taking over a migration lock without a sign of life for {age:.0f} s")
                self._break()
                continue
            if self._clock() >= deadline:
                raise SchemaLocked(
                    f"another `gnomon migrate` holds {LOCK} (last sign of life {age or 0:.0f} s ago): try again later"
                )
            if not told:
                report("waiting for another `gnomon migrate`")
                told = True
            sleep(0.2)

    def keep(self, *, is_long: bool) -> None:
        """Give a sign of life, before a step that takes long or when the last one is some time ago."""
        if is_long or self._clock() - self._signed_at > LEASE_SECONDS / 6:
            self._sign()

    def give_back(self) -> None:
        """Let others migrate."""
        self._drop(LOCK)

    def _sign(self) -> None:
        self._database.command(f"INSERT INTO {LOCK} (owner) VALUES ('{self._owner}')")
        self._signed_at = self._clock()

    def _drop(self, table: str) -> None:
        everywhere = f" {self._cluster.on}" if self._cluster else ""
        self._database.command(f"DROP TABLE IF EXISTS {table}{everywhere}")

    def _age_seconds(self) -> float | None:
        """Return seconds since the holder's last sign of life by the server's clock; None when the lock has gone."""
        try:
            rows = self._database.rows(
                "SELECT dateDiff('second', greatest("
                f"(SELECT max(at) FROM {LOCK}), toDateTime64(metadata_modification_time, 3)), now()) "
                f"FROM system.tables WHERE database = '{DATABASE}' AND name = 'migration_lock'"
            )
        except Exception:
            if _table_exists(self._database, "migration_lock"):
                raise
            return None
        return float(str(rows[0][0])) if rows else None

    def _break(self) -> None:
        """Move the dead lock aside before dropping it, so that of several waiters only one breaks it."""
        aside = f"{LOCK}_broken_{uuid.uuid4().hex[:8]}"
        everywhere = f" {self._cluster.on}" if self._cluster else ""
        try:
            self._database.command(f"RENAME TABLE {LOCK} TO {aside}{everywhere}")
        except Exception:
            if _table_exists(self._database, "migration_lock"):
                raise
            return
        self._drop(aside)
