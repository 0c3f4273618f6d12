"""
Build all tables again from the events that are there, with the masks, tolerances and prices of today's configuration.

  gnomon rebuild --data gnomon-data            from the logs on disk
  gnomon rebuild --config cluster.yaml         from Kafka, where gnomon.events.kafka is configured
  gnomon rebuild --prices --dry-run            what the stored calls cost by the price books of now
  gnomon rebuild --prices                      gives them that price, and shows the difference

Without --prices: stop `gnomon ingest` first (all workers); proxies go on. Needs room for the tables a second time.
Until all is built the old tables answer; nothing changes when it is interrupted. Events older than
`gnomon.retention.events` are gone: their rows stay as they are, and the first hour that is built anew is told. Exit
status 0 when done, 1 when it could not be: then nothing has changed.
"""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gnomon.cli import prices
from gnomon.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gnomon.config.model import Settings
    from ingest.rebuild import Source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prices", action="store_true", help="only the prices of what is stored; nothing is stopped for it"
    )
    prices.add_arguments(parser)
    parser.add_argument("--clickhouse-url", metavar="URL", help="instead of gnomon.clickhouse.url")


def run(args: argparse.Namespace) -> int:
    if args.prices:
        return prices.run(args)
    if args.dry_run or args.begin is not None:
        raise UsageError("--dry-run and --from go with --prices")
    from analytics.embedded import credentials
    from analytics.migrate import require_schema
    from gnomon.config.load import load
    from ingest.engine import Engine
    from ingest.rebuild import rebuild
    from ingest.runner import locked
    from ingest.settings import context, log_root

    settings = load(args.config, allow_insecure=args.allow_insecure)
    clickhouse = settings.gnomon.clickhouse
    if clickhouse.cluster:
        raise UsageError(
            "gnomon.clickhouse.cluster: tables on a cluster are not built again by this command. Workers that find "
            "empty tables store again all that Kafka has: docs/operations.md, Tables again on a cluster"
        )
    data_dir = Path(args.data)
    writer = credentials.read(data_dir, clickhouse.user, clickhouse.password_file)
    engine = Engine(
        args.clickhouse_url or clickhouse.url,
        writer.user if writer else "",
        writer.password if writer else "",
        timeout_seconds=3600.0,
    )

    def report(line: str) -> None:
        print(f"gnomon rebuild: {line}", file=sys.stderr)

    def build(sources: "Sequence[Source]") -> int:
        done = rebuild(engine, context(settings), sources, report)
        first_hour = max((one.first_hour_ms for one in done), default=0)
        since = (
            f"{datetime.fromtimestamp(first_hour / 1000, UTC):%Y-%m-%d %H:%M} UTC" if first_hour else "the beginning"
        )
        print(f"{sum(one.n_events for one in done)} events of {len(done)} logs; hours are anew from {since} on")
        return 0

    try:
        require_schema(engine)
        if settings.gnomon.events.kafka is not None:
            return build(topic_sources(settings))
        root = log_root(settings, data_dir)
        with locked(root):
            return build(log_sources(root))
    finally:
        engine.close()


def log_sources(root: Path) -> "Sequence[Source]":
    """
    Return the logs on disk.

    Raises:
        UsageError: there are none.
        LogError: one cannot be read.
    """
    from ingest.log_source import LogSource

    found = [LogSource(path) for path in sorted(root.iterdir()) if path.name.isdecimal()] if root.is_dir() else []
    if not found:
        raise UsageError(f"no log below {root}: give --data, or gnomon.events.log.path")
    return found


def topic_sources(settings: "Settings") -> "Sequence[Source]":
    """
    Return the partitions on Kafka.

    Raises:
        UsageError: workers are reading.
        KafkaError: the topics are not there, or Kafka is not.
    """
    from ingest.kafka.settings import worker_settings
    from ingest.kafka.source import n_members, sources

    chosen = worker_settings(settings)
    if n := n_members(chosen):
        raise UsageError(f"{n} workers of the group {chosen.group} are at work: stop every `gnomon ingest` first")
    return sources(chosen)
