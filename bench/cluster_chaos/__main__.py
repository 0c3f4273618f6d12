"""
The whole cluster under faults, counted: lost 0, doubled 0, wrong verdicts 0, or it fails.

    python -m bench cluster-chaos [--times 20] [--seconds 5] [--fault NAME]… [--mixed] [--report FILE]

Each fault has a cluster of its own: real broker, ClickHouse, proxy with shipper, two workers, each a process; then as
many outages as asked for, under load, over midnight, with inserts that arrive late. `--mixed`: one cluster, all faults
in any order. Needs Java (`make broker`).

    python -m bench cluster-chaos --times 1 --seconds 300      long outages
"""

import argparse
import dataclasses
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.cluster_chaos.cluster import ClusterFailed
from bench.cluster_chaos.faults import FAULTS, INSERTS, plan
from bench.cluster_chaos.run import Manner, Outcome, run
from tests.broker import jars


def report(name: str, outcome: Outcome, manner: Manner) -> dict[str, Any]:
    """Return a run's outcome as JSON has it."""
    return {
        "fault": name,
        "manner": dataclasses.asdict(manner),
        "done": dict(outcome.done),
        "lost": dict(outcome.count.lost),
        "doubled": dict(outcome.count.doubled),
        "wrong": outcome.count.wrong,
        "ended_by_itself": dict(outcome.unexpected),
        "late_inserts": outcome.n_late,
        "late_inserts_after_death": outcome.n_after_death,
        "behind_seconds": outcome.behind_seconds,
        "seconds": round(outcome.seconds, 1),
        **outcome.count.facts,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench cluster-chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=20, help="how often each fault (default 20)")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each outage (default 5)")
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="this one; may be given again")
    parser.add_argument("--mixed", action="store_true", help="one cluster for all faults")
    parser.add_argument("--rate", type=float, default=150.0, help="questions a second (default 150)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, help="write what was counted here, as JSON")
    parser.add_argument("--keep", type=Path, help="keep what the processes said below this folder")
    args = parser.parse_args()
    if why := jars.missing():
        print(f"skipped: {why}")
        return 0
    names = args.fault or list(FAULTS)
    manner = Manner(seconds=args.seconds, per_second=args.rate, seed=args.seed)
    if args.mixed:
        plans = {"mixed": plan(names, args.times, args.seed)}
    else:
        plans = {name: [name] * (max(args.times, len(INSERTS)) if "between" in name and args.times > 1 else args.times)
                 for name in names}  # fmt: skip
    reports: list[dict[str, Any]] = []
    is_exact = True
    for name, faults in plans.items():
        folder = Path(tempfile.mkdtemp(prefix="gnomon-chaos-", dir=args.keep))
        started = time.monotonic()

        def tell(line: str, name: str = name, started: float = started) -> None:
            print(f"  {name} [{time.monotonic() - started:4.0f} s] {line}", file=sys.stderr, flush=True)

        try:
            outcome = run(folder, faults, manner, tell)
        except (ClusterFailed, AssertionError) as error:
            print(f"{name}: failed: {error}", flush=True)
            reports.append({"fault": name, "failed": str(error)})
            is_exact = False
        else:
            print(f"{name} x {outcome.done.total()}: {outcome.line()}", flush=True)
            for what, found in (("lost", outcome.count.lost), ("doubled", outcome.count.doubled)):
                for where, n in found.items():
                    print(f"  {name}: {what}: {n} {where}", flush=True)
            for line in outcome.count.wrong[:10]:
                print(f"  {name}: wrong: {line}", flush=True)
            if outcome.unexpected:
                print(f"  {name}: {dict(outcome.unexpected)}", flush=True)
            reports.append(report(name, outcome, manner))
            is_exact &= outcome.count.is_exact
        if args.report:
            args.report.write_text(json.dumps(reports, indent=1) + "\n")
    return 0 if is_exact else 1


if __name__ == "__main__":
    sys.exit(main())
