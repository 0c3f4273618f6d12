"""`gnomon query`: rows in three formats, exact values, plain errors, reading only."""

import csv
import io
import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from analytics.migrate import migrate
from analytics.questions import ResultColumn
from gnomon.cli.query import decode, exact, fitted, heading, parameters, write
from gnomon.config.model import Retention
from gnomon.errors import UsageError
from tests.analytics.server import GNOMON, ClickHouse


@pytest.fixture(scope="module")
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClickHouse]:
    """An engine of this module's own, without the schema."""
    server = ClickHouse(tmp_path_factory.mktemp("query"))
    server.start()
    yield server
    server.stop()


def query(clickhouse: ClickHouse, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GNOMON, "query", "--config", str(clickhouse.config), *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=60,
        check=False,
    )


EVERYTHING = (
    "SELECT 9007199254740992 AS n, 9007199254740993 AS big, toDecimal128('0.1', 12) AS usd, 0.5 AS ratio, "
    "CAST(NULL AS Nullable(String)) AS nothing, 'a,\"b\"\n∅' AS s, [1, 2] AS l, true AS b, "
    "toDateTime64('2026-01-02 03:04:05.678', 3, 'UTC') AS at, nan AS broken"
)


@pytest.mark.clickhouse
def test_json_is_exact(clickhouse: ClickHouse) -> None:
    """What a double cannot hold is a string."""
    ran = query(clickhouse, "--sql", EVERYTHING, "--format", "json")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == [
        {
            "n": 9007199254740992,
            "big": "9007199254740993",
            "usd": "0.1",
            "ratio": 0.5,
            "nothing": None,
            "s": 'a,"b"\n∅',
            "l": [1, 2],
            "b": True,
            "at": "2026-01-02 03:04:05.678",
            "broken": None,
        }
    ]


@pytest.mark.clickhouse
def test_csv_and_table_have_a_header(clickhouse: ClickHouse) -> None:
    """CSV keeps every character, a table stays one line a row."""
    as_csv = query(clickhouse, "--sql", EVERYTHING, "--format", "csv").stdout
    as_table = query(clickhouse, "--sql", EVERYTHING).stdout
    (row,) = csv.DictReader(io.StringIO(as_csv))

    assert (row["n"], row["usd"], row["nothing"], row["s"]) == ("9007199254740992", "0.1", "", 'a,"b"\n∅')
    assert len(as_table.splitlines()) == 3
    assert as_table.splitlines()[0].split()[:3] == ["n", "big", "usd"]


@pytest.mark.clickhouse
@pytest.mark.parametrize(
    ("output_format", "expected"), [("json", "[]\n"), ("csv", "a\n"), ("table", "a\n─\n(no rows)\n")]
)
def test_no_rows_is_an_answer(clickhouse: ClickHouse, output_format: str, expected: str) -> None:
    """In each format, exit 0."""
    ran = query(clickhouse, "--sql", "SELECT 1 AS a WHERE 0", "--format", output_format)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, expected, "")


@pytest.mark.clickhouse
def test_parameters_are_bound(clickhouse: ClickHouse) -> None:
    """As values, whatever is in them."""
    ran = query(
        clickhouse,
        "--sql",
        "SELECT {a:String} AS a, {n:UInt8} + 1 AS n;",
        "--param",
        "a=it's=1",
        "--param",
        "n=2",
        "--format",
        "json",
    )

    assert json.loads(ran.stdout) == [{"a": "it's=1", "n": 3}]


@pytest.mark.clickhouse
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--sql", "SELECT nosuch"], 1, "UNKNOWN_IDENTIFIER"),
        (["--sql", "SELECT * FROM gnomon_core.x"], 1, "Not allowed for readers: table gnomon_core.x"),
        (["--sql", "DROP DATABASE gnomon"], 1, "Not allowed for readers"),
        (["--sql", "SELECT file('/etc/passwd')"], 1, "function file"),
        (["--sql", "SELEC"], 1, "ClickHouse: "),
        (["--sql", "SELECT 1 FORMAT JSON"], 2, "leave FORMAT out"),
        (["--sql", "SELECT {a:UInt8}"], 1, "UNKNOWN_QUERY_PARAMETER"),
        (["--sql", " ; "], 2, "--sql is empty"),
        (["--sql", "DESCRIBE gnomon.requests"], 1, "no SELECT; system.tables and system.columns"),
        ([], 2, "give a NAME"),
        (["nosuch"], 2, "no question 'nosuch'"),
        (["--sql", "SELECT 1", "--param", "x"], 2, "not NAME=VALUE"),
    ],
)
def test_an_error_is_one_line(clickhouse: ClickHouse, arguments: list[str], status: int, message: str) -> None:
    """On stderr, with nothing on stdout."""
    ran = query(clickhouse, *arguments)

    assert (ran.returncode, ran.stdout) == (status, "")
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.clickhouse
@pytest.mark.parametrize("output_format", ["json", "csv", "table"])
def test_bytes_that_are_no_text_are_shown(clickhouse: ClickHouse, output_format: str) -> None:
    """A String of ClickHouse holds any bytes; a dead letter's often are none of UTF-8."""
    ran = query(clickhouse, "--sql", "SELECT unhex('61ff62') AS s", "--format", output_format)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "a\ufffdb" in ran.stdout


@pytest.mark.clickhouse
def test_an_error_behind_the_first_rows_fails(clickhouse: ClickHouse) -> None:
    """What is out is out, but the exit status says that it is not all."""
    ran = query(clickhouse, "--sql", "SELECT number, repeat('x', 90) FROM numbers(9000000)", "--format", "csv")

    assert ran.returncode == 1
    assert "max_result_rows" in ran.stderr or "Limit for result" in ran.stderr


@pytest.mark.clickhouse
def test_a_table_says_what_it_answers_and_in_what_units(clickhouse: ClickHouse) -> None:
    """The question and its time on stderr, units beside names that do not say them; none in what programs read."""
    with clickhouse.store() as store:
        migrate(store, Retention())
    span = ("--param", "from=2021-01-01", "--param", "to=2021-01-02")
    table = query(clickhouse, "spend_by_cause", *span)
    csv_ = query(clickhouse, "spend_by_cause", *span, "--format", "csv")

    assert table.stderr == (
        "What did paid calls cost, and why was each of them made? from 2021-01-01 00:00:00.000 to "
        "2021-01-02 00:00:00.000 UTC\n"
    )
    assert table.stdout.splitlines()[0].split("  ")[-5:] == [
        "n [calls]", "n_wasted [calls]", "units", "usd", "n_unpriced [calls]",
    ]  # fmt: skip
    assert csv_.stderr == ""
    assert csv_.stdout.startswith("network,vendor,account,tier,kind,cause,n,n_wasted,units,usd,n_unpriced\n")


@pytest.mark.parametrize(
    ("name", "unit", "expected"),
    [
        ("spent", "USD", "spent [USD]"), ("usd_own", "USD", "usd_own"), ("n", "calls", "n [calls]"),
        ("lasted_seconds", "s", "lasted_seconds"), ("p50_us", "us", "p50_us"), ("at", "UTC", "at"),
        ("rule", "", "rule"),
        ("paid_ratio", "0 to 1", "paid_ratio"), ("response_bytes", "bytes", "response_bytes"),
    ],
)  # fmt: skip
def test_a_unit_is_said_once(name: str, unit: str, expected: str) -> None:
    """By the name, or beside it."""
    assert heading(ResultColumn(name, "Float64", unit, "")) == expected


def test_nobody_at_the_address_is_told(clickhouse: ClickHouse) -> None:
    """With the command to run."""
    stopped = clickhouse.config.with_name("other.yaml")
    stopped.write_text(clickhouse.config.read_text().replace(clickhouse.url, "http://127.0.0.1:1"))
    ran = subprocess.run(
        [*GNOMON, "query", "--config", str(stopped), "--sql", "SELECT 1"], capture_output=True, text=True, check=False
    )

    assert ran.returncode == 1
    assert "http://127.0.0.1:1" in ran.stderr
    assert "`gnomon clickhouse --data DIR`" in ran.stderr


def test_the_list_needs_no_engine() -> None:
    """Names with their parameters."""
    ran = subprocess.run([*GNOMON, "query", "--list", "--format", "json"], capture_output=True, text=True, check=False)

    assert ran.returncode == 0
    assert isinstance(json.loads(ran.stdout), list)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (0, "UInt64", 0),
        (2**53, "UInt64", 2**53),
        (2**53 + 1, "UInt64", str(2**53 + 1)),
        (-(2**53) - 1, "Int64", str(-(2**53) - 1)),
        ("12", "LowCardinality(Nullable(UInt64))", 12),
        ("12", "String", "12"),
        (5, "Decimal(38, 12)", "5"),
        (None, "Nullable(Decimal(38, 12))", None),
        ([2**60, [1]], "Array(UInt64)", [str(2**60), [1]]),
        ({"a": 1}, "Map(String, UInt64)", {"a": 1}),
        (True, "Bool", True),
    ],
)
def test_a_value_keeps_its_digits(value: object, kind: str, expected: object) -> None:
    """At the edges of what JSON readers hold."""
    assert exact(value, kind) == expected


def test_decimals_keep_their_digits() -> None:
    """Through the parser too."""
    lines = [b'["d","f"]', b'["Decimal(38, 12)","Float64"]', b"[0.100000000001, 1e3]"]
    names, types, rows = decode(iter(lines))

    assert (names, types, list(rows)) == (["d", "f"], ["Decimal(38, 12)", "Float64"], [["0.100000000001", 1000.0]])


@pytest.mark.parametrize("given", [["x"], ["=1"], ["1a=2"], ["a=1", "a=2"]])
def test_a_parameter_is_a_name_and_a_value(given: list[str]) -> None:
    """Each once."""
    with pytest.raises(UsageError):
        parameters(given)


def test_a_table_is_aligned() -> None:
    """Numbers to the right, texts to the left, control characters shown."""
    out = io.StringIO()
    write(["name", "n"], ["String", "UInt64"], [["a\x1b[31m", 5], ["bb", None]], output_format="table", out=out)

    assert out.getvalue() == "name    n\n──────  ─\na�[31m  5\nbb      ∅\n"


class Terminal(io.StringIO):
    """What a person looks at."""

    def isatty(self) -> bool:
        return True


def test_a_table_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long texts are cut so that a row is one line; numbers, times and ids stay whole, and a file gets everything."""
    monkeypatch.setenv("COLUMNS", "80")
    names, types = ["at", "request_id", "value", "n"], ["DateTime64(3, 'UTC')", "String", "String", "UInt64"]
    row = ["2026-12-01 07:43:03.293", "add4c2078b579428-3b", "x" * 150, 12345]
    on_terminal, to_file = Terminal(), io.StringIO()
    write(names, types, [row], output_format="table", out=on_terminal)
    write(names, types, [row], output_format="table", out=to_file)
    shown = on_terminal.getvalue().splitlines()[2]

    assert len(shown) == 80
    assert shown == f"2026-12-01 07:43:03.293  add4c2078b579428-3b  {'x' * 26}…  12345"
    assert "x" * 150 in to_file.getvalue()


@pytest.mark.parametrize(
    ("widths", "floors", "total", "expected"),
    [
        ([3, 3], [3, 3], 8, [3, 3]),
        ([3, 30], [3, 20], 5, [3, 20]),
        ([30, 30], [20, 20], 52, [25, 25]),
        ([], [], 0, []),
    ],
    ids=["fits", "too narrow", "both cut", "none"],
)
def test_the_widest_columns_are_cut_first(
    widths: list[int], floors: list[int], total: int, expected: list[int]
) -> None:
    """Down to their floors and no further."""
    assert fitted(widths, floors, total) == expected
