"""
The schema on a cluster: each migration, written for one server, becomes its statements for many. Pure text to text.

    on one server                        on a cluster
    CREATE DATABASE d                    the same ON CLUSTER
    CREATE TABLE t (the sink's)          t_local, replicated within each shard, and t, distributed over them
    CREATE TABLE t (any other)           t, replicated to every server whatever its shard
    ALTER TABLE t ADD COLUMN             t_local first, then t
    CREATE VIEW v                        the same ON CLUSTER, over the distributed tables, as the writer

A table of the sink is one whose rows name their log (`log_id`, `part`): it is large. The others are small, and a copy
of them on each server makes joins with them local; so do `sink_epochs` and `sink_progress`, which every insert asks.

The sharding key is a function of `log_id` and `part` alone. So all rows of one key of the sink lie on one shard, which
is what makes its rule hold there (`ingest.sink`): an insert goes to one shard as one block, whole or not at all. And
because Kafka's partition of a request and of its mirrored answers is chosen by the request's id, a request's rows lie
together. Consecutive partitions of a topic go to the shards in turn.

Paths in Keeper have the macros `{shard}` and `{replica}`, which each server defines (`analytics.server_files`).
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

CORE = "gnomon_core"
LOCAL = "_local"
"""Behind the name of a table on each shard."""
SHARDING_KEY = "cityHash64(log_id) + part"
EVERYWHERE = frozenset({"sink_epochs", "sink_progress"})
"""Tables with the sink's key that are small, and asked by every insert."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_COMMENTS = re.compile(r"\A(?:\s*--[^\n]*\n)*\s*")
_CREATE_DATABASE = re.compile(r"CREATE DATABASE IF NOT EXISTS (\w+)\Z")
_CREATE_TABLE = re.compile(rf"CREATE TABLE (?:IF NOT EXISTS )?{CORE}\.(\w+)(?=\s*\()")
_ENGINE = re.compile(r"\bENGINE = (\w*MergeTree)(?:\(([^()]*)\))?")
_ADD_COLUMN = re.compile(rf"ALTER TABLE {CORE}\.(\w+) (ADD COLUMN IF NOT EXISTS .+)\Z", re.DOTALL)
_CREATE_VIEW = re.compile(r"CREATE (?:OR REPLACE )?VIEW (?:IF NOT EXISTS )?\w+\.\w+(?=\s)")
_DEFINER = "DEFINER = CURRENT_USER "


class NotForClusters(ValueError):
    """A migration of a form that this module does not know: teach it here."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the tables lie."""

    name: str
    """As the servers call it in `remote_servers`."""
    definer: str = "default"
    """User with whose rights the views read: one that every server knows."""

    def __post_init__(self) -> None:
        for name in (self.name, self.definer):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot be the name of a cluster or a user")

    @property
    def on(self) -> str:
        """The clause that sends a statement to every server."""
        return f"ON CLUSTER '{self.name}'"

    def replicated(self, table: str, engine: str, arguments: str = "", *, is_sharded: bool) -> str:
        """
        Return the engine of a replicated table.

        >>> Cluster("prod").replicated("bodies_local", "ReplacingMergeTree", "at", is_sharded=True)
        "ReplicatedReplacingMergeTree('/clickhouse/gnomon/prod/{shard}/bodies_local', '{replica}', at)"
        >>> Cluster("prod").replicated("alerts", "MergeTree", is_sharded=False)
        "ReplicatedMergeTree('/clickhouse/gnomon/prod/all/alerts', '{shard}-{replica}')"
        """
        shard, replica = ("{shard}", "{replica}") if is_sharded else ("all", "{shard}-{replica}")
        given = f", {arguments}" if arguments.strip() else ""
        return f"Replicated{engine}('/clickhouse/gnomon/{self.name}/{shard}/{table}', '{replica}'{given})"


def is_sharded(table: str, columns: str) -> bool:
    """Return whether a table with these columns (their text) is spread over the shards."""
    return table not in EVERYWHERE and "`log_id`" in columns and "`part`" in columns


def sharded_tables(sqls: Iterable[str]) -> frozenset[str]:
    """Return the tables that migrations spread over the shards."""
    found = ((sql, _CREATE_TABLE.search(sql)) for sql in sqls)
    return frozenset(match[1] for sql, match in found if match and is_sharded(match[1], sql))


def statements(sql: str, cluster: Cluster, sharded: Collection[str]) -> list[str]:
    """
    Return what one migration is on a cluster, in order; each may run twice.

    Args:
        sql: the text of its file.
        cluster: where.
        sharded: `sharded_tables` of all migrations: a later one that changes a table does not say what it is.

    Raises:
        NotForClusters: the statement has a form that is not known here.
    """
    code = _COMMENTS.sub("", sql).strip()
    comments = sql[: sql.index(code)].strip()
    head = f"{comments}\n" if comments else ""
    return [head + statement for statement in _statements(code, cluster, sharded)]


def _statements(code: str, cluster: Cluster, sharded: Collection[str]) -> list[str]:
    if _CREATE_DATABASE.match(code):
        return [f"{code} {cluster.on}"]
    if match := _CREATE_TABLE.match(code):
        return _tables(code, match[1], cluster)
    if match := _ADD_COLUMN.match(code):
        targets = [f"{match[1]}{LOCAL}", match[1]] if match[1] in sharded else [match[1]]
        return [f"ALTER TABLE {CORE}.{target} {cluster.on} {match[2]}" for target in targets]
    if (match := _CREATE_VIEW.match(code)) and code.count(_DEFINER) == 1:
        # The current user of a statement that a server runs for another one is nobody.
        whole = f"{match[0]} {cluster.on}{code[match.end() :]}"
        return [whole.replace(_DEFINER, f"DEFINER = `{cluster.definer}` ", 1)]
    raise NotForClusters(f"no form for clusters is known of: {code[:80]}")


def _tables(code: str, table: str, cluster: Cluster) -> list[str]:
    found = _ENGINE.findall(code)
    if len(found) != 1:
        raise NotForClusters(f"{table} has not one engine of the MergeTree family")
    ((engine, arguments),) = found
    sharded = is_sharded(table, code)
    name = f"{table}{LOCAL}" if sharded else table
    replicated = f"ENGINE = {cluster.replicated(name, engine, arguments, is_sharded=sharded)}"
    local = _CREATE_TABLE.sub(lambda m: m[0].replace(f"{CORE}.{table}", f"{CORE}.{name}") + f" {cluster.on}", code, 1)
    local = _ENGINE.sub(lambda _: replicated, local, 1)
    if not sharded:
        return [local]
    distributed = f"Distributed('{cluster.name}', '{CORE}', '{name}', {SHARDING_KEY})"
    return [
        local,
        f"CREATE TABLE IF NOT EXISTS {CORE}.{table} {cluster.on} AS {CORE}.{name}\nENGINE = {distributed}",
    ]
