"""
What is done to a cluster, by name. A fault takes away something for some seconds and gives it back; it returns then.

What the seed decides: the order, the place (which worker), the pauses between two faults, how a third worker leaves.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.cluster_chaos.cluster import READY_SECONDS, SESSION_SECONDS, Cluster, Process, wait_for
from bench.cluster_chaos.late import LateWay
from ingest.tables import TABLES

PAST_THE_SESSION: Final = SESSION_SECONDS + 2.0
INSERTS: Final = (*TABLES, "sink_progress")
"""In the order of a batch."""


@dataclass(slots=True)
class Scene:
    """What a fault needs."""

    cluster: Cluster
    late: LateWay
    chance: random.Random
    seconds: float
    """Of the outage."""
    number: int = 0
    """How many of the same kind came before."""

    def wait(self) -> None:
        """Let the outage last."""
        time.sleep(self.seconds)

    def any_worker(self) -> Process:
        """Return one of the workers."""
        return self.chance.choice(self.cluster.workers)


def _worker_killed(scene: Scene) -> None:
    worker = scene.any_worker()
    worker.kill()
    scene.wait()
    worker.start(wait=False)


def _worker_stopped(scene: Scene) -> None:
    worker = scene.any_worker()
    _expect(worker.stop(), worker)
    scene.wait()
    worker.start(wait=False)


def _worker_paused(scene: Scene) -> None:
    """Longer than its session, and revived while another one owns its partitions."""
    worker = scene.any_worker()
    worker.pause()
    time.sleep(max(scene.seconds, PAST_THE_SESSION))
    worker.resume()


def _worker_killed_between_inserts(scene: Scene) -> None:
    """It has all partitions, and dies behind the next table of a batch at each turn."""
    for worker in scene.cluster.workers:
        worker.kill()
    dying = scene.cluster.worker(die_behind=INSERTS[scene.number % len(INSERTS)])
    dying.start(wait=False)
    wait_for(lambda: dying.ended_by_itself is not None, READY_SECONDS, dying.said)
    _expect(dying.ended_by_itself, dying, -signal.SIGKILL)
    scene.wait()
    for worker in scene.cluster.workers:
        worker.start(wait=False)


def _rebalance(scene: Scene) -> None:
    """A third worker joins under load, stays and leaves, in peace or not."""
    third = scene.cluster.worker()
    third.start(wait=False)
    wait_for(third.is_ready, READY_SECONDS, third.said)
    scene.wait()
    if scene.chance.random() < 0.5:
        third.kill()
    else:
        _expect(third.stop(), third)


def _shipper_ends(number: signal.Signals) -> Callable[[Scene], None]:
    def end(scene: Scene) -> None:
        """As often as the proxy starts another one, until the time is over."""
        deadline = time.monotonic() + scene.seconds
        while True:
            for pid in scene.cluster.shippers():
                os.kill(pid, number)
            if time.monotonic() > deadline:
                return
            time.sleep(0.1)

    return end


def _proxy_killed(scene: Scene) -> None:
    scene.cluster.kills.append(time.monotonic())
    scene.cluster.proxy.kill()
    scene.wait()
    scene.cluster.proxy.start()


def _proxy_stopped(scene: Scene) -> None:
    proxy = scene.cluster.proxy
    _expect(proxy.stop(), proxy)
    scene.wait()
    proxy.start()


def _broker_killed(scene: Scene) -> None:
    scene.cluster.broker.kill()
    scene.wait()
    scene.cluster.broker.start()


def _broker_stopped(scene: Scene) -> None:
    scene.cluster.broker.stop()
    scene.wait()
    scene.cluster.broker.start()


def _shipper_killed_as_the_broker_pauses(scene: Scene) -> None:
    """What it sent lies in the broker's socket and is stored later, and the next shipper sends it again."""
    scene.cluster.broker.pause()
    time.sleep(scene.chance.uniform(0.2, 0.6))
    for pid in scene.cluster.shippers():
        os.kill(pid, signal.SIGKILL)
    scene.wait()
    scene.cluster.broker.resume()


def _broker_paused(scene: Scene) -> None:
    scene.cluster.broker.pause()
    scene.wait()
    scene.cluster.broker.resume()


def _clickhouse_killed(scene: Scene) -> None:
    scene.cluster.clickhouse.kill()
    scene.wait()
    scene.cluster.clickhouse.start()


def _clickhouse_stopped(scene: Scene) -> None:
    clickhouse = scene.cluster.clickhouse
    _expect(clickhouse.stop(), clickhouse)
    scene.wait()
    clickhouse.start()


def _clickhouse_paused(scene: Scene) -> None:
    scene.cluster.clickhouse.pause()
    scene.wait()
    scene.cluster.clickhouse.resume()


def _clickhouse_away(scene: Scene) -> None:
    """It lives, and nobody reaches it: what is under way goes on there and its answer is lost."""
    scene.late.cut()
    scene.wait()
    scene.late.is_open = True


FAULTS: Final[Mapping[str, Callable[[Scene], None]]] = {
    "worker killed": _worker_killed,
    "shipper killed": _shipper_ends(signal.SIGKILL),
    "proxy killed": _proxy_killed,
    "broker killed": _broker_killed,
    "clickhouse killed": _clickhouse_killed,
    "worker stopped": _worker_stopped,
    "shipper stopped": _shipper_ends(signal.SIGTERM),
    "proxy stopped": _proxy_stopped,
    "broker stopped": _broker_stopped,
    "clickhouse stopped": _clickhouse_stopped,
    "rebalance": _rebalance,
    "worker paused": _worker_paused,
    "broker paused": _broker_paused,
    "broker paused, shipper killed": _shipper_killed_as_the_broker_pauses,
    "clickhouse paused": _clickhouse_paused,
    "clickhouse away": _clickhouse_away,
    "killed between inserts": _worker_killed_between_inserts,
}
"""`stopped` is SIGTERM, `killed` SIGKILL, `paused` SIGSTOP and SIGCONT."""


def plan(names: Sequence[str], times: int, seed: int) -> list[str]:
    """Return each fault so many times, in an order that the seed decides."""
    chosen = [name for name in names for _ in range(times)]
    random.Random(seed).shuffle(chosen)
    return chosen


def _expect(found: int | None, process: Process, wanted: int = 0) -> None:
    """A process that is told to end does so well; one that has just been started may be ended by the signal itself."""
    if found != wanted and not (wanted == 0 and found == -signal.SIGTERM and "ready at" not in process.said()):
        raise AssertionError(f"{process.name} ended with {found}: {process.said()[-3000:]}")
