"""
Records that could not be stored: see them, and try them again.

  gnomon dead-letters list
  gnomon dead-letters list --from now-30d --reason unknown_version --format json
  gnomon dead-letters retry --all
  gnomon dead-letters retry --topic gnomon.responses.v1 --partition 3 --offset 17
  gnomon dead-letters retry --reason unknown_version --dry-run

A retry goes through the steps with today's program, masks and prices. What can be stored now is stored and leaves the
dead letters, what cannot stays; workers may be at work. Exit status 1 when one stays. The whole record is in the view
`gnomon.dead_letters`: gnomon query --sql "SELECT offset, bytes FROM gnomon.dead_letters".
"""

import argparse
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from gnomon.errors import UsageError

NAMES = ("topic", "partition", "offset", "reason", "outcome", "detail")
TYPES = ("String", "UInt16", "UInt64", "String", "String", "String")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="what could not be stored, newest first")
    listing.add_argument("--from", dest="start", metavar="T", default="now-7d", help="ISO 8601, or now-7d (default)")
    listing.add_argument("--to", dest="end", metavar="T", default="now", help="not included (default: now)")
    listing.add_argument("--limit", metavar="N", type=int, default=100, help="rows at most (default: 100)")
    again = actions.add_parser("retry", help="try again, with the program and the settings of today")
    again.add_argument("--topic", metavar="T", default="", help="of this topic, prefix included")
    again.add_argument("--partition", metavar="P", type=int, default=-1, help="of this partition")
    again.add_argument("--offset", metavar="N", type=int, default=-1, help="this record")
    again.add_argument("--all", action="store_true", dest="is_all", help="every dead letter there is")
    again.add_argument("--dry-run", action="store_true", help="say what would become of each, change nothing")
    again.add_argument("--data", metavar="DIR", default="gnomon-data", help="data folder (default: gnomon-data)")
    for action in (listing, again):
        action.add_argument("--reason", metavar="R", default="", help="put aside for this reason")
        action.add_argument("--format", choices=("table", "json", "csv"), default="table", help="how rows come out")
        action.add_argument("--config", metavar="FILE", default="gnomon.yaml", help="configuration (gnomon.yaml)")
        action.add_argument("--allow-insecure", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    return show(args) if args.action == "list" else retry(args)


def show(args: argparse.Namespace) -> int:
    """Print what could not be stored."""
    from analytics import questions, reading
    from gnomon.cli.query import decode, write
    from gnomon.config.load import load

    settings = load(args.config, allow_insecure=args.allow_insecure).gnomon.clickhouse
    question = questions.load("dead_letters")
    given = {"from": args.start, "to": args.end, "limit": str(args.limit), "reason": args.reason}
    with reading.connect(settings) as store:
        bound = question.bind(given, datetime.now(UTC))
        names, types, rows = decode(store.lines(question.sql, "JSONCompactEachRowWithNamesAndTypes", bound))
        write(names, types, rows, output_format=args.format, out=sys.stdout)
    return 0


def retry(args: argparse.Namespace) -> int:
    """Try letters again, and print what became of each."""
    from analytics.embedded import credentials
    from analytics.migrate import require_schema
    from gnomon.cli.query import write
    from gnomon.config.load import load
    from ingest import retry as retrying
    from ingest.engine import Engine
    from ingest.settings import context

    if not args.is_all and not (args.topic or args.reason or args.partition >= 0 or args.offset >= 0):
        raise UsageError("say which: --topic, --partition, --offset, --reason, or --all")
    settings = load(args.config, allow_insecure=args.allow_insecure)
    clickhouse = settings.gnomon.clickhouse
    steps = context(settings)
    writer = credentials.read(Path(args.data), clickhouse.user, clickhouse.password_file)
    user, password = (writer.user, writer.password) if writer else ("", "")
    engine = Engine(clickhouse.url, user, password, cluster=clickhouse.cluster)
    try:
        require_schema(engine)
        chosen = retrying.letters(engine, topic=args.topic, part=args.partition, off=args.offset, reason=args.reason)
        tried = [retrying.retry(engine, steps, letter, is_dry=args.dry_run) for letter in chosen]
    finally:
        engine.close()
    rows = [
        (t.letter.topic, t.letter.part, t.letter.off, t.reason or t.letter.reason, t.outcome, t.detail) for t in tried
    ]
    write(list(NAMES), list(TYPES), rows, output_format=args.format, out=sys.stdout)
    counts = Counter(t.outcome for t in tried)
    would = "would be " if args.dry_run else ""
    print(
        f"gnomon dead-letters: {counts['stored']} {would}stored, {counts['poison']} stay, {counts['waits']} wait",
        file=sys.stderr,
    )
    return 0 if counts["stored"] == len(tried) else 1
