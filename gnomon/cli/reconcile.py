"""
Is everything that was accepted stored, once? Counts per hour and stage, and the gaps in the numbers of each process.

  gnomon reconcile
  gnomon reconcile --from now-7d --format json

Rows of the view `reconciliation` on stdout. What is wrong goes to stderr, in words, and makes the exit status 1:

  lost         an hour has fewer rows stored (and dead letters) than records that went through
  doubled      an hour has rows twice
  never came   numbers of a proxy process are missing between others: its log was full, or was lost with its disk

What was accepted and is on its way is named and is no fault; nor are rows of the running hour that are stored and not
written down as done yet, which takes a second or two. The newest five minutes are not searched for gaps.
"""

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.store import Store

MAX_GAPS_NAMED = 20
SETTLED_AFTER = timedelta(minutes=5)
"""After its end an hour has all its counts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="start", metavar="T", default="now-24h", help="ISO 8601, or now-24h (default)")
    parser.add_argument("--to", dest="end", metavar="T", default="now", help="not included (default: now)")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table", help="how rows come out")
    parser.add_argument("--config", metavar="FILE", default="gnomon.yaml", help="configuration (default: gnomon.yaml)")
    parser.add_argument("--allow-insecure", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    from analytics import reading
    from gnomon.cli.query import write
    from gnomon.config.load import load

    settings = load(args.config, allow_insecure=args.allow_insecure).gnomon.clickhouse
    with reading.connect(settings) as store:
        names, types, rows = ask(store, "reconcile", args.start, args.end)
        n_columns = names.index("is_whole")  # the view's own columns are before it
        write(names[:n_columns], types[:n_columns], [r[:n_columns] for r in rows], output_format=args.format,
              out=sys.stdout)  # fmt: skip
        _, _, gaps = ask(store, "sequence_gaps", args.start, "now-5m" if args.end == "now" else args.end)
    now = datetime.now(UTC)
    wrong = [line for row in rows for line in faults(dict(zip(names, row, strict=True)), now)]
    wrong += [
        f"never came: {n} events of process {proc}, numbers {first} to {last}, between {before} and {after}"
        for proc, first, last, n, before, after in gaps[:MAX_GAPS_NAMED]
    ]
    if len(gaps) > MAX_GAPS_NAMED:
        wrong.append(f"never came: {len(gaps) - MAX_GAPS_NAMED} more gaps; see `gnomon query sequence_gaps`")
    for line in wrong + [line for row in rows for line in on_their_way(dict(zip(names, row, strict=True)))]:
        print(f"gnomon reconcile: {line}", file=sys.stderr)
    return 1 if wrong else 0


def ask(store: "Store", name: str, start: str, end: str) -> tuple[list[str], list[str], list[list[object]]]:
    """Return names, types and rows of a named question over a range."""
    from analytics import questions
    from gnomon.cli.query import decode

    question = questions.load(name)
    bound = question.bind({"from": start, "to": end}, datetime.now(UTC))
    names, types, rows = decode(store.lines(question.sql, "JSONCompactEachRowWithNamesAndTypes", bound))
    return names, types, [list(row) for row in rows]


def faults(row: Mapping[str, object], now: datetime | None = None) -> list[str]:
    """
    Return what is wrong with an hour, in words.

    Args:
        row: the hour's counts.
        now: events come in; None: traffic rests, and every row is written down as done.

    >>> faults({"hour": "h", "accepted": 9, "shipped": 9, "stored": 7, "distinct_stored": 6, "dead_lettered": 1})
    ['lost: 2 of 9 events of hour h', 'doubled: 1 of 7 events of hour h']
    """
    found = []
    shipped, stored, distinct, dead = (int(str(row[k])) for k in _STAGES[1:])
    # Not by `stored`: a row that is there twice does not make up for one that is not there.
    if shipped > distinct + dead:
        found.append(f"lost: {shipped - distinct - dead} of {shipped} events of hour {row['hour']}")
    if shipped < stored + dead and distinct == stored and not (now and is_running(str(row["hour"]), now)):
        found.append(f"doubled: {stored + dead - shipped} more rows than events of hour {row['hour']}")
    if distinct < stored:
        found.append(f"doubled: {stored - distinct} of {stored} events of hour {row['hour']}")
    return found


def is_running(hour: str, now: datetime) -> bool:
    """
    Return whether events of an hour may just have been stored.

    >>> is_running("2026-12-01 08:00:00.000", datetime(2026, 12, 1, 9, 4, tzinfo=UTC))
    True
    >>> is_running("2026-12-01 08:00:00.000", datetime(2026, 12, 1, 9, 6, tzinfo=UTC))
    False
    """
    begins_at = datetime.fromisoformat(hour).replace(tzinfo=UTC)
    return now < begins_at + timedelta(hours=1) + SETTLED_AFTER


def on_their_way(row: Mapping[str, object]) -> list[str]:
    """Return what is accepted and not stored yet, in words."""
    n = int(str(row["accepted"])) - int(str(row["shipped"]))
    return [f"on their way: {n} events, last seen in hour {row['hour']}"] if n > 0 else []


_STAGES = ("accepted", "shipped", "stored", "distinct_stored", "dead_lettered")
