"""
Create or upgrade the ClickHouse schema, and make the Kafka topics where Kafka is configured.

  gnomon migrate --dry-run      print the statements that would run, run none
  gnomon migrate                run them; a second run does nothing
  gnomon migrate --print        print all statements of the schema; asks no server

With `gnomon.clickhouse.cluster` the tables are replicated and distributed over its servers (docs/clickhouse.md).

Waits for ClickHouse and for another migrate at work. Retention settings become the TTL of the tables and the retention
of new topics. A topic that is there with settings that would lose events is an error; it is not changed.
Exit status 0 when all is up to date, 1 when it could not be brought there.
"""

import argparse
import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gnomon.errors import UsageError
from gnomon.process import die_with_parent

if TYPE_CHECKING:
    from analytics.clustering import Cluster
    from gnomon.config.model import ClickHouseSettings, Gnomon


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", default="gnomon.yaml", help="configuration (default: gnomon.yaml)")
    parser.add_argument("--data", metavar="DIR", default="gnomon-data", help="data folder (default: gnomon-data)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--dry-run", action="store_true", help="print what would run")
    what.add_argument("--print", action="store_true", dest="print_all", help="print the whole schema")
    parser.add_argument("--quiet", action="store_true", help="do not name each step")
    parser.add_argument(
        "--wait", metavar="SECONDS", type=float, default=30.0, help="for ClickHouse and Kafka (default: 30)"
    )
    parser.add_argument("--clickhouse-url", metavar="URL", help="instead of gnomon.clickhouse.url")
    parser.add_argument("--allow-insecure", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    die_with_parent()
    # As an exception: it gives the lock back, which the next migrate would wait for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    from analytics.embedded import credentials
    from analytics.migrate import migrate, plan, schema_version, whole
    from analytics.store import Store, ping
    from gnomon.config.load import load

    settings = load(args.config, allow_insecure=args.allow_insecure).gnomon
    clickhouse = settings.clickhouse
    url = args.clickhouse_url or clickhouse.url
    cluster = cluster_of(clickhouse)
    if args.print_all:
        for statement in whole(settings.retention, cluster):
            print(f"{statement};\n")
        return 0
    if settings.events.kafka is not None:
        topics(settings, args)
    # The embedded ClickHouse generates its credentials when it starts: wait for it first.
    is_embedded = bool(ping(url, args.wait))
    if is_embedded and cluster:
        raise UsageError("gnomon.clickhouse.cluster: the embedded ClickHouse has no cluster; leave it out")
    writer = credentials.read(Path(args.data), clickhouse.user, clickhouse.password_file)
    if writer is None and is_embedded:
        raise UsageError(
            f"no writer's credentials under {args.data}/secrets: give the --data of the ClickHouse at work"
        )
    user, password = (writer.user, writer.password) if writer else ("", "")
    with Store.connect(url, user, password, database="system") as store:
        if args.dry_run:
            for statement in plan(store, settings.retention, cluster):
                print(f"{statement};\n")
            return 0
        n = migrate(
            store,
            settings.retention,
            cluster=cluster,
            report=lambda line: None if args.quiet else print(f"gnomon migrate: {line}", file=sys.stderr),
        )
        print(f"schema version {schema_version(store)}, {n} migrations run")
    return 0


def cluster_of(settings: "ClickHouseSettings") -> "Cluster | None":
    """
    Return where the tables lie; None = on one server.

    Raises:
        UsageError: the name cannot be one.
    """
    from analytics.clustering import Cluster

    if not settings.cluster:
        return None
    try:
        return Cluster(settings.cluster, settings.user or "default")
    except ValueError as error:
        raise UsageError(f"gnomon.clickhouse.cluster: {error}") from error


def topics(settings: "Gnomon", args: argparse.Namespace) -> None:
    """
    Make the topics, or print what would be made.

    Raises:
        KafkaError: they cannot be made, or those that are there would lose events.
    """
    from gnomon.kafka.client import require_client

    require_client()
    from gnomon.kafka.hearsay import keep_to_ourselves
    from gnomon.kafka.migrate import migrate, plan

    keep_to_ourselves()
    if args.dry_run:
        for line in asyncio.run(plan(settings, wait_seconds=args.wait)):
            print(f"-- topic {line}\n")
        return

    def report(line: str) -> None:
        print(f"gnomon migrate: {line}", file=sys.stderr)

    n = asyncio.run(migrate(settings, report, wait_seconds=args.wait))
    print(f"{n} Kafka topics made")
