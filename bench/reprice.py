"""
History priced again: `gnomon rebuild --prices` over many million calls, and its memory.

    python -m bench reprice [--attempts N] [--days N]

N (10,000,000) attempts over 90 days are made inside the embedded ClickHouse and rolled up as the sink would, then given
the prices of a dearer book; at the end the sums of calls and rollup must agree, and a second look must find nothing.
"""

import argparse
import resource
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from analytics.migrate import migrate
from gnomon.config.model import Retention
from gnomon.cost.book import parse, shipped
from gnomon.cost.charge import Charger, PriceBooks, text_of
from ingest.engine import Engine
from ingest.repricing.run import Repricing
from tests.analytics.server import ClickHouse

BOOK = "{vendor: alchemy, usd_per_million_units: 0.61, default_units: 30, billing: {batch: per_call, timeout: 7}}"
ROWS = """
INSERT INTO gnomon_core.attempts (at, request_id, project, user, network, upstream, vendor, account, tier, kind, cause,
    method, outcome, status, request_bytes, units, usd, is_useless, is_wasted, blocks_behind, log_id, topic, part, off)
SELECT now64(3, 'UTC') - toIntervalSecond(intHash32(number + 1) % {span}), hex(number), 'main',
    concat('user', toString(number % 20)), concat('evm:', toString(number % 7 % 3)), concat('u', toString(number % 7)),
    if(number % 7 < 3, '', 'alchemy'), 'acme', if(number % 7 < 3, 'primary', 'fallback'),
    if(intHash32(number) % 10 < 9, 'client', 'head_poll'),
    if(number % 7 < 3, '', ['timeout', 'primary_error'][intHash32(number + 7) % 2 + 1]),
    concat('eth_m', toString(intHash32(number + 3) % 12)),
    ['result', 'result', 'empty', 'timeout'][intHash32(number + 5) % 4 + 1], 200, 180, 20,
    toDecimal128(if(number % 7 < 3, 0, 10500000), 12) / 1000000000000, number % 50 = 0, number % 50 = 0, number % 300,
    'l', 't', 0, number
FROM numbers({first}, {n}) SETTINGS max_partitions_per_insert_block = 100
"""
ROLLUP = """
INSERT INTO gnomon_core.spend_hourly (hour, project, network, vendor, account, upstream, tier, kind, cause, method, n,
    n_wasted, n_unpriced, n_unitless, units, usd, log_id, topic, part, off)
SELECT toStartOfHour(at), project, network, vendor, account, upstream, tier, kind, cause, method, count(),
    countIf(is_wasted), countIf(isNull(usd)), countIf(isNull(units)), sum(units), sum(usd), log_id, topic, part,
    max(off)
FROM gnomon_core.attempts GROUP BY ALL
"""
CHUNK = 1_000_000


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=90)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="reprice"))
    server = ClickHouse(folder)
    server.start()
    try:
        with server.store() as store:
            migrate(store, Retention())
            for first in range(0, args.attempts, CHUNK):
                n = min(CHUNK, args.attempts - first)
                store.command(ROWS.format(first=first, n=n, span=args.days * 86_400 - 86_400))
            store.command(ROLLUP)
        engine = Engine(server.url, server.writer.user, server.writer.password, timeout_seconds=600)
        charger = Charger(PriceBooks(shipped(), [parse(BOOK, "dearer.yaml")]))
        end = datetime.now(UTC) + timedelta(days=1)
        print(f"{args.attempts} attempts over {args.days} days; engine {memory_mb(server.pid):.0f} MB, "
              f"this process {memory_mb_of_us():.0f} MB")  # fmt: skip
        started, peak = time.perf_counter(), [0.0]

        def report(_: object) -> None:
            peak[0] = max(peak[0], memory_mb(server.pid))

        looked = Repricing(engine, charger, None, end).look()
        print(f"look: {time.perf_counter() - started:.1f} s, {sum(d.n_changed for d in looked.differences)} of "
              f"{sum(d.n for d in looked.differences)} calls differ")  # fmt: skip
        started = time.perf_counter()
        outcome = Repricing(engine, charger, None, end, report=report).run()
        seconds = time.perf_counter() - started
        n_changed = sum(d.n_changed for d in outcome.differences)
        change = text_of(sum(d.usd_change for d in outcome.differences))
        print(f"run: {seconds:.1f} s, {outcome.n_days} days, {n_changed} calls changed ({n_changed / seconds:.0f}/s), "
              f"{change} USD; engine at most {peak[0]:.0f} MB, this process {memory_mb_of_us():.0f} MB")  # fmt: skip
        left = sum(d.n_changed for d in Repricing(engine, charger, None, end).look().differences)
        hourly = engine.rows("SELECT sum(usd), sum(units), sum(n_wasted) FROM gnomon.spend_hourly")
        calls = engine.rows("SELECT sum(usd), sum(units), countIf(is_wasted) FROM gnomon_core.attempts")
        print(f"afterwards {left} differ; sums of rollup and calls: {hourly[0]} {calls[0]}")
        engine.close()
        return 0 if left == 0 and hourly == calls else 1
    finally:
        server.stop()
        shutil.rmtree(folder)


def memory_mb_of_us() -> float:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
