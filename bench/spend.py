"""
Hourly spend over 30 days: the question `spend_over_time` beside DuckDB over the same rows, in the same run.

    python -m bench spend [--attempts N] [--duckdb PYTHON]

N (10,000,000) attempts are made inside the embedded ClickHouse and rolled up as the sink would. PYTHON is an
interpreter that has `duckdb`, which is no dependency of ours; without it only our own times are told. Sums must agree.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from analytics.migrate import migrate
from analytics.questions import SETTINGS, load
from gnomon.config.model import Retention
from tests.analytics.server import ClickHouse

ROWS = """
INSERT INTO gnomon_core.attempts (at, request_id, project, network, upstream, vendor, account, tier, kind, cause,
    method, outcome, units, usd, is_wasted)
SELECT now64(3, 'UTC') - toIntervalSecond(intHash32(number + 1) % 2592000), hex(number), 'main',
    concat('evm:', toString(number % 7 % 3)), concat('u', toString(number % 7)), if(number % 7 < 3, '', 'alchemy'),
    'acme', if(number % 7 < 3, 'primary', 'fallback'), if(intHash32(number) % 10 < 9, 'client', 'head_poll'),
    if(number % 7 < 3, '', ['timeout', 'primary_error'][intHash32(number + 7) % 2 + 1]),
    concat('eth_m', toString(intHash32(number + 3) % 12)), 'result', 26,
    toDecimal128(if(number % 7 < 3, 0, 13650001), 12) / 1000000000000, number % 50 = 0
FROM numbers({n}) SETTINGS max_partitions_per_insert_block = 100
"""
ROLLUP = """
INSERT INTO gnomon_core.spend_hourly (hour, project, network, vendor, account, upstream, tier, kind, cause, method, n,
    n_wasted, n_unpriced, units, usd, log_id, topic, part, off)
SELECT toStartOfHour(at), project, network, vendor, account, upstream, tier, kind, cause, method, count(),
    countIf(is_wasted), countIf(isNull(usd)), sum(units), sum(usd), 'l', 't', 0, 0
FROM gnomon_core.attempts GROUP BY ALL
"""
RAW = """
SELECT toStartOfHour(at) AS hour, count() AS n, countIf(is_wasted), sum(usd), sumIf(usd, tier = 'fallback'),
    sumIf(usd, kind IN ('probe', 'head_poll')), sumIf(usd, kind = 'shadow')
FROM gnomon.attempts WHERE vendor != '' GROUP BY hour ORDER BY hour
"""
DUCKDB = """
import duckdb, statistics, sys, time
db = duckdb.connect(sys.argv[1] + "/x.duckdb")
db.execute("SET enable_progress_bar = false")
db.execute(f"CREATE TABLE a AS SELECT * FROM '{sys.argv[1]}/a.parquet'")
q = '''SELECT date_trunc('hour', a.at), count(*), count(*) FILTER (WHERE is_wasted), sum(usd),
    sum(usd) FILTER (WHERE tier = 'fallback'), sum(usd) FILTER (WHERE kind IN ('probe', 'head_poll')),
    sum(usd) FILTER (WHERE kind = 'shadow') FROM a WHERE vendor != '' GROUP BY 1 ORDER BY 1'''
took = []
for _ in range(7):
    started = time.perf_counter()
    rows = db.execute(q).fetchall()
    took.append(time.perf_counter() - started)
print(f"duckdb {duckdb.__version__}: {statistics.median(took) * 1000:.0f} ms, {sum(r[3] for r in rows):f} USD")
"""


def median_ms(times: int, run: Callable[[], object]) -> float:
    took = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        took.append(time.perf_counter() - started)
    return statistics.median(took) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=10_000_000)
    parser.add_argument("--duckdb", metavar="PYTHON", default="")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="spend"))
    server = ClickHouse(folder)
    server.start()
    try:
        with server.store() as store:
            migrate(store, Retention())
            store.command(ROWS.format(n=args.attempts))
            store.command(ROLLUP)
            ((n_groups,),) = store.rows("SELECT count() FROM gnomon_core.spend_hourly")
        question = load("spend_over_time")
        with server.reader() as reader:

            def ask() -> Decimal:
                bound = question.bind({"from": "now-31d"}, datetime.now(UTC))
                rows = reader.query(question.sql, bound, SETTINGS).rows
                return sum((row[3] for row in rows if row[3] is not None), Decimal(0))

            print(f"{args.attempts} attempts in {n_groups} groups, {ask():f} USD")
            print(f"spend_over_time (rollup): {median_ms(9, ask):.0f} ms")
            print(f"the same over gnomon.attempts: {median_ms(5, lambda: reader.rows(RAW)):.0f} ms")
        if args.duckdb:
            sql = "SELECT at, vendor, tier, kind, is_wasted, usd FROM gnomon_core.attempts FORMAT Parquet"
            (folder / "a.parquet").write_bytes(server.ask(sql, is_writer=True)[2])
            subprocess.run([args.duckdb, "-c", DUCKDB, str(folder)], check=True)
        return 0
    finally:
        server.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
