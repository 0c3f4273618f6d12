"""The arithmetic of docs/sizing.md."""

import pytest

from bench.planning import FIGURES, Figures, pages_tables, plan
from tests.services import ROOT

PAGE = (ROOT / "docs" / "sizing.md").read_text("utf-8")


def test_the_pages_tables_are_those_of_the_arithmetic() -> None:
    """`python -m bench planning` prints them anew."""
    assert [table for table in pages_tables() if table not in PAGE] == []


@pytest.mark.parametrize("shadows", [0.0, 0.02, 1.0, 3.0])
@pytest.mark.parametrize("requests", [0.1, 1, 100, 12_345, 1e6])
def test_twice_the_traffic_never_needs_less(requests: float, shadows: float) -> None:
    """Nor do more shadows; and there is always one of each."""
    one, two = plan(requests, shadows=shadows), plan(2 * requests, shadows=shadows)
    more = plan(requests, shadows=shadows + 1)

    for name in ("events", "proxies", "workers", "kafka_bytes", "kafka_disk", "shards", "row_disk", "clickhouse_cores"):
        assert 0 < getattr(one, name) <= getattr(two, name)
        assert getattr(one, name) <= getattr(more, name)


@pytest.mark.parametrize("requests", [1, 5_000, 77_000, 1e6])
def test_every_worker_has_a_partition_and_every_shard_as_many(requests: float) -> None:
    """A worker without one is idle, a shard with more than the others is full first."""
    found = plan(requests)

    assert found.partitions >= found.workers
    assert found.partitions % found.shards == 0


def test_by_hand() -> None:
    """10,000 requests/s with one shadow, figures that are easy to reckon with."""
    figures = Figures(
        proxy_us=60, shadow_us=60, shipper_us=6, worker_us=60, clickhouse_us=50, insert_us=0, primary_bytes=1000,
        shadow_bytes=1000, compression=2, primary_row_bytes=50, shadow_row_bytes=50, body_bytes=0,
    )  # fmt: skip
    found = plan(10_000, rows_days=10, events_days=1, figures=figures)

    assert found.events == 20_000
    assert found.proxies == 2  # 1.2 cores, each 60 % busy
    assert found.shipper_cores == pytest.approx(0.2)
    assert found.workers == 2
    assert found.partitions == 4
    assert found.kafka_bytes == 10e6
    assert found.kafka_disk == 10e6 * 86_400 * 3
    assert found.clickhouse_cores == pytest.approx(2.0)
    assert found.row_disk == 1e6 * 10 * 86_400 * 2
    assert found.inserts == 4 * 7 / 0.8


def test_the_page_says_what_is_planned_with() -> None:
    """Each figure stands in its table."""
    for text in (
        f"{FIGURES.proxy_us:.0f} + {FIGURES.shadow_us:.0f} us",
        f"| {FIGURES.worker_us:.0f} us |",
        f"| {FIGURES.clickhouse_us:.0f} us |",
        f"| {FIGURES.insert_us / 1000:.0f} ms |",
        f"{FIGURES.primary_bytes:,.0f} + {FIGURES.shadow_bytes:,.0f} B",
        f"{FIGURES.primary_row_bytes:.0f} + {FIGURES.shadow_row_bytes:.0f} B",
    ):
        assert text in PAGE
