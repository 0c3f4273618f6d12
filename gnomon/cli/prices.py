"""
`gnomon rebuild --prices`: history priced again.

  gnomon rebuild --prices --dry-run                      what the stored calls cost by the price books of now
  gnomon rebuild --prices                                gives them that price, and shows the difference
  gnomon rebuild --prices --from now-90d --format json   calls of that time only

Send SIGHUP to `gnomon up` or `gnomon ingest` first, so that new calls are charged by the new books; all goes on
meanwhile. It may be interrupted or killed anywhere: run it again. What was charged before stays in
`gnomon.attempts.usd_charged`, each run in `gnomon.repricings`. Amounts are exact; a call without a price counts as
unpriced, never as zero. Exit status 0 when done, 1 when ClickHouse is away or refuses, 2 for a range that is none.
"""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gnomon.errors import UsageError

if TYPE_CHECKING:
    from ingest.repricing.run import Outcome, Progress

NAMES = ("network", "upstream", "vendor", "account", "method", "n", "n_changed", "n_unpriced_before",
         "n_unpriced_after", "units_before", "units_after", "usd_before", "usd_after", "usd_change")  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="with --prices: show the difference, write nothing")
    parser.add_argument("--from", dest="begin", metavar="T", help="with --prices: start (default: the oldest call)")
    parser.add_argument("--to", dest="end", metavar="T", default="now", help="with --prices: end, not included")
    parser.add_argument("--all", action="store_true", help="with --prices: also what does not differ")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table", help="how rows come out")
    parser.add_argument("--config", metavar="FILE", default="gnomon.yaml", help="configuration (default: gnomon.yaml)")
    parser.add_argument("--data", metavar="DIR", default="gnomon-data", help="data folder (default: gnomon-data)")
    parser.add_argument("--allow-insecure", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    from analytics.embedded import credentials
    from analytics.migrate import require_schema
    from analytics.questions import moment
    from gnomon.cli.progress import StatusLine
    from gnomon.config.load import load
    from ingest.engine import Engine
    from ingest.repricing.run import Repricing
    from ingest.settings import context

    settings = load(args.config, allow_insecure=args.allow_insecure)
    now = datetime.now(UTC)
    begin = None if args.begin is None else moment("--from", args.begin, now)
    end = moment("--to", args.end, now)
    if begin is not None and begin >= end:
        raise UsageError("--from must lie before --to")
    clickhouse = settings.gnomon.clickhouse
    if clickhouse.cluster and not args.dry_run:
        raise UsageError(
            "gnomon.clickhouse.cluster: calls on a cluster cannot be changed yet; --dry-run shows the difference"
        )
    writer = credentials.read(Path(args.data), clickhouse.user, clickhouse.password_file)
    user, password = (writer.user, writer.password) if writer else ("", "")
    status = StatusLine(sys.stderr)

    def report(progress: "Progress") -> None:
        status.update(
            f"gnomon rebuild: {progress.day} ({progress.n_days_done + 1} of {progress.n_days} days), "
            f"{progress.n_calls} calls, {progress.n_changed} charged otherwise"
            + (f"; changing them, {progress.n_parts_left} parts to go" if progress.n_parts_left else "")
        )

    engine = Engine(args.clickhouse_url or clickhouse.url, user, password, timeout_seconds=600.0)
    try:
        require_schema(engine)
        repricing = Repricing(engine, context(settings).charger, begin, end, report=report)
        outcome = repricing.look() if args.dry_run else repricing.run()
    finally:
        status.close()
        engine.close()
    _show(args, outcome)
    return 0


def _show(args: argparse.Namespace, outcome: "Outcome") -> None:
    from gnomon.cli.query import write
    from gnomon.cost.charge import text_of

    found = outcome.differences
    shown = [difference for difference in found if args.all or difference.is_one]
    types = ["String"] * 5 + ["UInt64"] * 4 + ["Decimal(38, 12)"] * 5
    rows: list[list[object]] = []
    for difference in shown:
        values = [getattr(difference, name) for name in NAMES]
        rows.append([text_of(v) if kind.startswith("Decimal") else v for v, kind in zip(values, types, strict=True)])
    write(NAMES, types, rows, output_format=args.format, out=sys.stdout)
    before, after = sum(d.usd_before for d in found), sum(d.usd_after for d in found)
    n_changed = sum(d.n_changed for d in found)
    _say(
        f"{sum(d.n for d in found)} calls, {n_changed} {'would change' if args.dry_run else 'changed'}: "
        f"{text_of(before)} USD charged, {text_of(after)} USD by the books of now, "
        f"{'+' if after >= before else ''}{text_of(after - before)}"
    )
    if outcome.run:
        _say(f"run {outcome.run} of gnomon.repricings; what was charged before: gnomon.attempts.usd_charged")
    if outcome.n_late:
        _say(
            f"{outcome.n_late} calls that came meanwhile were charged by other books: have `gnomon ingest` read the "
            "new ones (SIGHUP), then run this again"
        )
    if outcome.n_left:
        _say(
            f"{outcome.n_left} groups of gnomon.spend_hourly stay as they were: their calls are not kept any more, in "
            "part or all"
        )


def _say(text: str) -> None:
    print(f"gnomon: {text}", file=sys.stderr)
