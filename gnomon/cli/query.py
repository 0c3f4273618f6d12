"""
Named questions and read-only SQL over what is stored.

  gnomon query --list
  gnomon query NAME --param from=now-7d --param network=evm:1
  gnomon query --sql "SELECT outcome, count() AS n FROM gnomon.comparisons GROUP BY outcome" --format json

The views are in database `gnomon`; only reading is possible. `--format json` is one array of objects: integers up to
2^53 as numbers, larger ones and decimals as strings (a double would not hold them), times as `YYYY-MM-DD hh:mm:ss.mmm`
UTC. Exit status 0 with or without rows, 1 when ClickHouse refuses or is away, 2 for a question or a parameter that
there is not.
"""

import argparse
import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from gnomon.errors import UsageError

if TYPE_CHECKING:
    from analytics.questions import Question, ResultColumn

EXACT_IN_DOUBLE = 2**53
MAX_CELL = 200
"""A table is for eyes: longer cells are cut there, and only there."""

MIN_CUT = 20
"""On a terminal texts are cut further so that rows fit; ids stay whole."""

_INTEGER = re.compile(r"(?:LowCardinality\()?(?:Nullable\()?U?Int\d+\)*")

_NUMBER = re.compile(r"(?:LowCardinality\(|Nullable\()*(?:U?Int|Float|Decimal)")

Row = Sequence[Any]


class _Number(str):
    """A JSON number with a fraction, kept as it was written."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("name", nargs="?", metavar="NAME", help="a named question")
    what.add_argument("--list", action="store_true", help="name the questions, with their parameters")
    what.add_argument("--sql", metavar="TEXT", help="a SELECT of your own")
    parser.add_argument(
        "--param", action="append", default=[], metavar="K=V", help="value of {K:Type} in the statement; repeatable"
    )
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table", help="how rows come out")
    parser.add_argument("--config", metavar="FILE", default="gnomon.yaml", help="configuration (default: gnomon.yaml)")
    parser.add_argument("--allow-insecure", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # whatever the locale: what is stored has every character
    given = parameters(args.param)
    if args.list:
        from analytics.questions import load_all

        write(*listing(load_all()), output_format=args.format, out=sys.stdout)
        return 0
    if args.name is None and args.sql is None:
        raise UsageError("give a NAME, --sql TEXT or --list")
    from gnomon.config.load import load

    gnomon = load(args.config, allow_insecure=args.allow_insecure).gnomon
    settings = gnomon.clickhouse
    question = None
    if args.name is not None:
        from analytics import accounts
        from analytics.questions import load as load_question

        question = load_question(args.name)
        now = datetime.now(UTC)
        at = question.moment("to", given, now)
        sql, bound = question.sql, question.bind(given, now, accounts.bindings(gnomon.pricing.accounts, at or now))
    else:
        from analytics.embedded.statement import trailing_format

        sql, bound = args.sql.strip().rstrip(";").rstrip(), dict(given)
        if not sql:
            raise UsageError("--sql is empty: give a SELECT")
        if trailing_format(sql.encode()):
            raise UsageError("leave FORMAT out of the statement and give --format table, json or csv")

    from analytics import reading

    with reading.connect(settings) as store:
        reading.check(store, sql)
        lines = store.lines(sql, "JSONCompactEachRowWithNamesAndTypes", bound)
        names, types, rows = decode(lines)
        if args.format == "table" and question is not None:
            print(title(question, bound), file=sys.stderr)
            names = [heading(column) for column in question.columns]
        write(names, types, rows, output_format=args.format, out=sys.stdout)
    return 0


def title(question: "Question", bound: Mapping[str, object]) -> str:
    """Return what a table of a question answers, and for which time."""
    spans = [f"{word} {bound[word]}" for word in ("from", "to") if word in bound]
    return f"{question.question} {' '.join([*spans, 'UTC'])}".strip() if spans else question.question


def heading(column: "ResultColumn") -> str:
    """
    Return a column's name with its unit, where the name does not say it.

    >>> from analytics.questions import ResultColumn
    >>> heading(ResultColumn("spent", "Float64", "USD", "")), heading(ResultColumn("usd_own", "Float64", "USD", ""))
    ('spent [USD]', 'usd_own')
    >>> heading(ResultColumn("lasted_seconds", "Float64", "s", "")), heading(ResultColumn("n", "UInt64", "calls", ""))
    ('lasted_seconds', 'n [calls]')
    """
    words = column.name.split("_")
    is_said = column.unit.lower() in words or column.unit in ("", "UTC", "0 to 1") or "seconds" in words
    return column.name if is_said else f"{column.name} [{column.unit}]"


def parameters(given: Sequence[str]) -> dict[str, str]:
    """
    Return the values by name.

    Raises:
        UsageError: one is not K=V, or stands twice.
    """
    values: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--param {text!r} is not NAME=VALUE")
        if name in values:
            raise UsageError(f"--param {name} stands twice")
        values[name] = value
    return values


def decode(lines: Iterator[bytes]) -> tuple[list[str], list[str], Iterator[Row]]:
    """
    Return names, types and rows of a result in JSONCompactEachRowWithNamesAndTypes.

    Bytes that are no UTF-8 (a String may hold any) become U+FFFD.
    """
    names = [str(name) for name in json.loads(next(lines, b"[]"))]
    types = [str(kind) for kind in json.loads(next(lines, b"[]"))]
    rows = (json.loads(line.decode("utf-8", "replace"), parse_float=_Number) for line in lines if line)
    return names, types, ([exact(value, kind) for value, kind in zip(row, types, strict=True)] for row in rows)


def exact(value: Any, kind: str) -> Any:
    """
    Return a value as `--format json` shows it.

    >>> exact(2**53, "UInt64"), exact(2**53 + 1, "UInt64"), exact("18446744073709551615", "UInt64")
    (9007199254740992, '9007199254740993', '18446744073709551615')
    >>> exact(_Number("0.10"), "Nullable(Decimal(38, 12))"), exact(3, "Decimal(38, 12)")
    ('0.10', '3')
    >>> exact(_Number("0.5"), "Float64")
    0.5
    """
    if isinstance(value, str) and not isinstance(value, _Number) and _INTEGER.fullmatch(kind):
        value = int(value)
    return _exact(value, "Decimal" in kind)


def _exact(value: Any, is_decimal: bool) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, _Number):
        return str(value) if is_decimal else float(value)
    if isinstance(value, int):
        return str(value) if is_decimal or abs(value) > EXACT_IN_DOUBLE else value
    if isinstance(value, list):
        return [_exact(item, is_decimal) for item in value]
    if isinstance(value, dict):
        return {name: _exact(item, is_decimal) for name, item in value.items()}
    return value


def write(names: Sequence[str], types: Sequence[str], rows: Iterable[Row], *, output_format: str, out: TextIO) -> None:
    """Write rows in one of the formats of the command line."""
    if output_format == "json":
        separator = "["
        for row in rows:
            out.write(separator + json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False))
            separator = ",\n "
        out.write("[]\n" if separator == "[" else "]\n")
    elif output_format == "csv":
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_text(value) for value in row] for row in rows)
    else:
        width = shutil.get_terminal_size().columns if out.isatty() else None
        _write_table(names, types, rows, out, width)
    out.flush()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cell(value: Any) -> str:
    text = "∅" if value is None else "".join(c if c.isprintable() else "�" for c in _text(value))
    return _cut(text, MAX_CELL)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def fitted(widths: Sequence[int], floors: Sequence[int], total: int) -> list[int]:
    """
    Return widths of columns that fit into a total, two blanks between, the widest ones cut first.

    Args:
        widths: what each column would take.
        floors: below these none is cut, so the answer may still be too wide.

    >>> fitted([5, 60, 40], [5, 20, 20], 60)
    [5, 26, 25]
    """
    found = list(widths)
    while sum(found) + 2 * (len(found) - 1) > total:
        i = max(range(len(found)), key=lambda i: (found[i] > floors[i], found[i]))
        if found[i] <= floors[i]:
            break
        found[i] -= 1
    return found


def _write_table(
    names: Sequence[str], types: Sequence[str], rows: Iterable[Row], out: TextIO, width: int | None
) -> None:
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) if cells else len(name) for i, name in enumerate(names)]
    right = [_NUMBER.match(kind) is not None for kind in types]
    if width is not None:
        floors = [
            whole if _NUMBER.match(kind) or "DateTime" in kind else max(len(name), MIN_CUT)
            for name, kind, whole in zip(names, types, widths, strict=True)
        ]
        widths = fitted(widths, floors, width)
        cells = [[_cut(text, widths[i]) for i, text in enumerate(row)] for row in cells]
    last = len(names) - 1

    def line(texts: Sequence[str]) -> str:
        padded = [
            text.rjust(widths[i]) if right[i] else text if i == last else text.ljust(widths[i])
            for i, text in enumerate(texts)
        ]
        return "  ".join(padded).rstrip() + "\n"

    out.write(line(names))
    out.write("  ".join("─" * width for width in widths) + "\n")
    out.writelines(line(row) for row in cells)
    if not cells:
        out.write("(no rows)\n")


def listing(questions: Sequence["Question"]) -> tuple[list[str], list[str], list[Row]]:
    """Return the questions as rows: name, question, grain, parameters."""
    rows: list[Row] = [
        (
            question.name,
            question.question,
            question.grain,
            ", ".join(
                parameter.name if parameter.default is None else f"{parameter.name}={parameter.default}"
                for parameter in question.parameters
            ),
        )
        for question in questions
    ]
    return ["name", "question", "grain", "parameters"], ["String"] * 4, rows
