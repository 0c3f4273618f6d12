"""`gnomon rebuild --prices`: the stored calls by another book, beside what was charged."""

import itertools
import json
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from gnomon.supervisor import command
from tests.analytics.conftest import clickhouse  # noqa: F401 - a fixture
from tests.analytics.server import ClickHouse

pytestmark = pytest.mark.clickhouse
NAMES = ("at", "request_id", "network", "upstream", "vendor", "account", "method", "outcome", "status", "n_batch",
         "request_bytes", "units", "usd")  # fmt: skip
DAYS = (datetime(2081, 1, 1, 10, tzinfo=UTC) + timedelta(days=n) for n in itertools.count())


@dataclass(frozen=True)
class Day:
    """A day that belongs to one test, and the configuration of its books."""

    config: Path
    at: datetime

    @property
    def network(self) -> str:
        return f"evm:{self.at:%Y%m%d}"

    def rebuild(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        span = ("--from", f"{self.at:%Y-%m-%d}", "--to", f"{self.at + timedelta(days=1):%Y-%m-%d}")
        line = [*command("rebuild", "--prices", *span, *arguments)]
        line += ["--config", str(self.config), "--data", str(self.config.parent)]
        return subprocess.run(line, capture_output=True, text=True, timeout=60)


@pytest.fixture
def day(clickhouse: ClickHouse) -> Day:  # noqa: F811
    """Three calls charged by a book, one that never left, one unpriced; and a configuration with a dearer book."""
    day = Day(clickhouse.data_dir / "prices.yaml", next(DAYS))

    def row(
        number: int, vendor: str, sent: int, units: int | None, usd: str | None, outcome: str = "result"
    ) -> list[object]:
        return [day.at, f"x{number}", day.network, vendor, vendor, "acme", "eth_call", outcome, 200, 1, sent,
                None if units is None else Decimal(units), None if usd is None else Decimal(usd)]  # fmt: skip

    rows = [row(n, "mine", 100, 10, "0.00001") for n in range(3)]
    rows += [row(3, "mine", 0, 0, "0", "timeout"), row(4, "other", 100, None, None)]
    with clickhouse.store() as store:
        store.insert("gnomon_core.attempts", NAMES, rows)
    (clickhouse.data_dir / "mine.yaml").write_text("{vendor: mine, usd_per_million_units: 1.5, default_units: 10}")
    books = f", pricing: {{books: ['{clickhouse.data_dir / 'mine.yaml'}']}}}}\n"
    day.config.write_text(clickhouse.config.read_text().rstrip().removesuffix("}") + books)
    return day


def test_a_dry_run_shows_the_difference_and_writes_nothing(day: Day, clickhouse: ClickHouse) -> None:  # noqa: F811
    """Exact, for each upstream and method; what stays as it is only when asked for."""
    ran = day.rebuild("--dry-run", "--format", "json")
    (row,) = json.loads(ran.stdout)

    assert ran.returncode == 0
    assert (row["upstream"], row["n"], row["n_changed"], row["usd_before"], row["usd_after"], row["usd_change"]) == (
        "mine", 4, 3, "0.000030000000", "0.000045000000", "0.000015000000",
    )  # fmt: skip
    assert (
        "5 calls, 3 would change: 0.000030000000 USD charged, 0.000045000000 USD by the books of now, +0.000015000000"
        in ran.stderr
    )
    both = json.loads(day.rebuild("--dry-run", "--format", "json", "--all").stdout)
    assert {r["upstream"]: r["n_unpriced_after"] for r in both} == {"mine": 0, "other": 1}
    with clickhouse.reader() as store:
        rows = store.rows(f"SELECT sum(usd), max(repricing) FROM gnomon.attempts WHERE network = '{day.network}'")
    assert rows == [(Decimal("0.00003"), 0)]


def test_history_is_priced_again(day: Day, clickhouse: ClickHouse) -> None:  # noqa: F811
    """The same difference, and then there is none; the old price stays beside the new one, the run is noted."""
    ran = day.rebuild("--format", "json")
    (row,) = json.loads(ran.stdout)
    again = day.rebuild("--format", "json")

    assert (ran.returncode, row["usd_change"], row["n_changed"]) == (0, "0.000015000000", 3)
    assert "5 calls, 3 changed" in ran.stderr
    assert f"{day.at:%Y-%m-%d} (1 of 1 days)" in ran.stderr
    assert json.loads(again.stdout) == []
    with clickhouse.reader() as store:
        rows = store.rows(f"SELECT sum(usd), sum(usd_charged) FROM gnomon.attempts WHERE network = '{day.network}'")
        ((run, books, n_changed),) = store.rows(
            "SELECT run, books, n_changed FROM gnomon.repricings "
            f"WHERE toDate(begins_at) = '{day.at:%Y-%m-%d}' ORDER BY run LIMIT 1"
        )
    assert rows == [(Decimal("0.000045"), Decimal("0.00003"))]
    assert f"run {run} of gnomon.repricings" in ran.stderr
    assert n_changed == 3
    assert books["mine"].startswith("mine.yaml ")


@pytest.mark.parametrize("arguments", [("--from", "2082-01-01"), ("--to", "then")])
def test_a_range_that_is_none_is_refused(day: Day, arguments: tuple[str, str]) -> None:
    """With status 2."""
    assert day.rebuild(*arguments).returncode == 2


def test_a_dry_run_of_all_tables_is_none(day: Day) -> None:
    """`--dry-run` and `--from` go with `--prices`: without it nothing is begun."""
    line = [*command("rebuild", "--dry-run"), "--config", str(day.config), "--data", str(day.config.parent)]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=60)

    assert ran.returncode == 2
    assert "go with --prices" in ran.stderr
