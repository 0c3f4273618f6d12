"""One cluster's life under a plan of faults: start, load, faults, quiet, count."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.cluster_chaos import upstreams
from bench.cluster_chaos.clients import Clients
from bench.cluster_chaos.cluster import N_PARTITIONS, Cluster, wait_for
from bench.cluster_chaos.counting import Count, count
from bench.cluster_chaos.faults import FAULTS, Scene
from bench.cluster_chaos.late import LateWay
from bench.cluster_chaos.poison import Poisoner, quiet
from bench.cluster_chaos.traffic import Traffic
from gnomon.events.topics import RESPONSES

Tell = Callable[[str], None]
QUIET_SECONDS = 300.0
"""For everything to be stored once nobody asks any more."""
SHIPPED_AT_ONCE = 1_000
"""Events that a shipper surely sends in the time it has to end."""
AHEAD_SECONDS = 1_800.0
"""So far the clock is set ahead at the end: calls that never ended are old enough then."""
LONG_SECONDS = 60.0
"""Of an outage: how long the way takes to catch up is measured behind it."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a cluster is run."""

    seconds: float = 5.0
    """Of each outage."""
    pause: tuple[float, float] = (1.0, 4.0)
    """Between two faults, at least and at most."""
    per_second: float = 150.0
    """Questions."""
    n_workers: int = 2
    seed: int = 1
    is_patient: bool = True
    """Whether to wait, by a clock that is ahead, for the verdicts of calls that a killed proxy left without an end."""


@dataclass(slots=True)
class Outcome:
    """What a run has shown."""

    done: Counter[str]
    count: Count
    seconds: float
    unexpected: Counter[str]
    """Processes that ended by themselves."""
    n_late: int
    n_after_death: int
    behind_seconds: list[float] = field(default_factory=list)
    """After each long outage: until all that was answered before its end was stored."""

    def line(self) -> str:
        """Return it in one line."""
        facts = self.count.facts
        behind = f", caught up within {max(self.behind_seconds):.0f} s" if self.behind_seconds else ""
        return (
            f"{facts['answered']} answered of {facts['asked']}, {facts['events']} events, {facts['sent again']} sent "
            f"again, {facts['rows']} rows on {facts['days']} days, {facts['poison']} poison, "
            f"{facts['verdicts never ended']} never ended, {self.n_late} late inserts ({self.n_after_death} after "
            f"death){behind}: lost {self.count.lost.total()}, doubled {self.count.doubled.total()}, wrong "
            f"{len(self.count.wrong)}, in {self.seconds:.0f} s"
        )


def run(folder: Path, faults: Sequence[str], manner: Manner, tell: Tell = lambda line: None) -> Outcome:
    """
    Do the faults to a new cluster, in this order, under load; return what was counted.

    Args:
        folder: for everything; empty.
        faults: names of `faults.FAULTS`.
        tell: is given a line now and then.

    Raises:
        ClusterFailed, AssertionError: a process does not start, end or catch up as it must.
    """
    started = time.monotonic()
    chance = random.Random(manner.seed)
    calls = upstreams.Calls()
    with quiet(), Traffic() as traffic, Cluster(folder) as cluster:
        late = LateWay(cluster.clickhouse_port, random.Random(manner.seed))
        traffic.enter(late.listening())
        cluster.begin(traffic.enter(upstreams.listening(calls)), late.port, manner.n_workers)
        cluster.end_day_in(len(faults) * (manner.seconds + sum(manner.pause) / 2) / 2)
        clients = Clients(cluster.proxy_port, manner.per_second)
        poisoner = Poisoner(cluster.broker.address, RESPONSES, N_PARTITIONS)
        working = [traffic.start(clients.run()), traffic.start(poisoner.run())]
        tell(f"begun after {time.monotonic() - started:.0f} s")
        scene = Scene(cluster, late, chance, manner.seconds)
        done: Counter[str] = Counter()
        behind: list[float] = []
        for name in faults:
            time.sleep(chance.uniform(*manner.pause))
            scene.number = done[name]
            FAULTS[name](scene)
            cluster.look()
            done[name] += 1
            tell(f"{name} {done[name]}, {clients.n_answered} answered")
            if manner.seconds >= LONG_SECONDS:
                behind.append(_catch_up(cluster, clients))
                tell(f"caught up after {behind[-1]:.1f} s")
        time.sleep(manner.pause[1])
        clients.stop()
        poisoner.stop()
        for one in working:
            one.result()
        _end_of_events(cluster)
        _wait_stored(cluster, poisoner)
        if manner.is_patient and cluster.kills:
            _judge_what_never_ended(cluster)
        counted = count(cluster, clients, calls, poisoner, is_patient=manner.is_patient)
        return Outcome(
            done, counted, time.monotonic() - started, cluster.unexpected, late.n_late, late.n_after_death, behind
        )


def _catch_up(cluster: Cluster, clients: Clients) -> float:
    """Return how long it takes until all that is answered by now is stored."""
    started = time.monotonic()
    n = clients.n_answered
    answered = "SELECT uniqExact(block_number) FROM gnomon_core.requests WHERE outcome = 'result'"

    def has_caught_up() -> bool:
        cluster.look()
        return int(cluster.rows(answered)[0][0]) >= n

    wait_for(has_caught_up, QUIET_SECONDS)
    return time.monotonic() - started


def _end_of_events(cluster: Cluster) -> None:
    """Stop the proxy once its shipper has caught up; it sends the last events before it ends."""

    def is_shipped() -> bool:
        cluster.look()
        return max(cluster.log.lag_by_consumer.values(), default=0) < SHIPPED_AT_ONCE

    wait_for(is_shipped, QUIET_SECONDS, lambda: f"the shipper does not catch up: {cluster.proxy.said()[-3000:]}")
    if (code := cluster.proxy.stop()) != 0:
        raise AssertionError(f"the proxy ended with {code}: {cluster.proxy.said()[-3000:]}")


def _wait_stored(cluster: Cluster, poisoner: Poisoner) -> None:
    """Return when everything has been stored and written down; what never comes is for the count to say."""

    def is_stored() -> bool:
        cluster.look()
        log = cluster.log
        n = log.accepted + len(poisoner.acknowledged)
        if log.positions.get("shipper") != log.accepted:
            return False
        ((stored, written),) = cluster.rows(
            "SELECT (SELECT count() FROM gnomon.events), "
            "(SELECT sum(n) FROM gnomon_core.sink_progress WHERE topic != 'missing')"
        )
        return int(stored) >= n and int(written) >= n

    deadline = time.monotonic() + QUIET_SECONDS
    while not is_stored() and time.monotonic() < deadline:
        time.sleep(0.3)


def _judge_what_never_ended(cluster: Cluster) -> None:
    """Set the clock ahead; return when each mirrored call has its verdict."""
    cluster.move_clock(AHEAD_SECONDS)
    open_pairs = (
        "SELECT count() FROM gnomon_core.shadow_decisions WHERE decision = 'mirrored' AND "
        "(request_id, upstream) NOT IN (SELECT request_id, shadow_upstream FROM gnomon_core.comparisons)"
    )
    deadline = time.monotonic() + QUIET_SECONDS
    while int(cluster.rows(open_pairs)[0][0]) and time.monotonic() < deadline:
        time.sleep(0.5)
