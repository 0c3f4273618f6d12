"""
The stream processors alone: from the events of the proxies to the tables in ClickHouse.

  gnomon ingest --config gnomon.yaml --data gnomon-data

With `gnomon.events.kafka` it is one of any number of workers that share the topics' partitions. Without, it reads every
log below `gnomon.events.log.path` (else DIR/events). Waits for ClickHouse, its schema and the topics, and goes on until
SIGTERM, which ends the batch at hand: exit status 0. Where that takes longer than --stop-timeout (ClickHouse hangs, the
machine has no time) it ends with status 75; what is left the next one stores, nothing twice. SIGHUP reads prices, masks
and tolerances again, and what is kept; a file that cannot be used leaves the old ones in force and says so. A worker
that stands still ends with status 75, to be started again. Messages on stderr; /healthz and /metrics are where the one
line on stdout says.
"""

import argparse
import dataclasses
import gc
import logging
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gnomon import logs
from gnomon.config.model import ClickHouseSettings
from gnomon.errors import UsageError
from gnomon.process import die_with_parent

if TYPE_CHECKING:
    from gnomon.config.model import Settings
    from ingest.engine import Engine
    from ingest.metrics import Metrics
    from ingest.reloading import Reloader
    from ingest.rows import Context

log = logging.getLogger("gnomon.ingest")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", default="gnomon.yaml", help="configuration (default: gnomon.yaml)")
    parser.add_argument("--data", metavar="DIR", default="gnomon-data", help="data folder (default: gnomon-data)")
    parser.add_argument("--health-port", metavar="PORT", type=int, help="instead of gnomon.health.ingestPort")
    parser.add_argument(
        "--session-timeout", metavar="SECONDS", type=float, default=10.0,
        help="Kafka: a worker that is silent so long loses its partitions (default: 10)",
    )  # fmt: skip
    parser.add_argument(
        "--max-dead-letters", metavar="N", type=int, default=1000,
        help="Kafka: of a partition within a minute; above it the partition stands still, 0 = no limit (default: 1000)",
    )  # fmt: skip
    parser.add_argument(
        "--stop-timeout", metavar="SECONDS", type=float, default=40.0,
        help="after SIGTERM; a supervisor should wait longer before it kills (default: 40)",
    )  # fmt: skip
    parser.add_argument("--clickhouse-url", metavar="URL", help="instead of gnomon.clickhouse.url")
    parser.add_argument("--allow-insecure", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    die_with_parent()
    from gnomon.config.load import load
    from ingest.ending import Deadline

    settings = load(args.config, allow_insecure=args.allow_insecure)
    logs.start(settings.log_level)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with Deadline(stop, args.stop_timeout):
        return process(settings, args, stop)


def process(settings: "Settings", args: argparse.Namespace, stop: threading.Event) -> int:
    """Store what the logs or the topics bring until told to stop."""
    import msgspec

    from ingest.health import HealthServer
    from ingest.runner import Runner
    from ingest.settings import context, log_root, runner_settings

    data_dir = Path(args.data)
    steps = context(settings)
    clickhouse = settings.gnomon.clickhouse
    if args.clickhouse_url:
        clickhouse = msgspec.structs.replace(clickhouse, url=args.clickhouse_url)
    engine = wait_for_schema(clickhouse, data_dir, stop)
    if engine is None:
        return 0
    # Events and rows hold no cycles: collecting as often as by default costs a third of the steps' time.
    gc.freeze()
    gc.set_threshold(200_000, 10, 100)
    if settings.gnomon.events.kafka is not None:
        return work(settings, args, engine, steps, stop)
    runner = Runner(log_root(settings, data_dir), engine, steps, settings=runner_settings(settings), stop=stop)
    health = HealthServer(runner.health, runner.metrics.render, *listen(settings, args))
    health.start()
    reloader = reload_at_hangup(args, steps, runner.metrics)
    log.info("started logs=%s health=%s/healthz", log_root(settings, data_dir), health.url)
    print(f"gnomon ingest: ready at {health.url}", flush=True)
    started = time.monotonic()
    try:
        runner.run()
    finally:
        reloader.stop()
        health.stop()
    log.info("stopped after_seconds=%.0f", time.monotonic() - started)
    return 0


def listen(settings: "Settings", args: argparse.Namespace) -> tuple[int, str]:
    """Return port and host of /healthz and /metrics."""
    chosen = settings.gnomon.health
    return chosen.ingest_port if args.health_port is None else args.health_port, chosen.host


def reload_at_hangup(args: argparse.Namespace, steps: "Context", metrics: "Metrics") -> "Reloader":
    """Have prices, masks and tolerances read again at SIGHUP; return who does it."""
    from gnomon.config.load import load
    from ingest.reloading import Reloader
    from ingest.settings import context

    reloader = Reloader(
        steps,
        lambda: context(load(args.config, allow_insecure=args.allow_insecure)),
        lambda result: metrics.add("gnomon_ingest_reloads_total", (result,)),
    )
    reloader.start()
    signal.signal(signal.SIGHUP, lambda *_: reloader.request())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    return reloader


def work(
    settings: "Settings", args: argparse.Namespace, engine: "Engine", steps: "Context", stop: threading.Event
) -> int:
    """Be a worker of the cluster until told to stop."""
    try:
        from ingest.kafka.settings import worker_settings
        from ingest.kafka.worker import Worker
    except ModuleNotFoundError as error:
        raise UsageError(
            f"gnomon.events.kafka needs the package {error.name}: pip install 'gnomon[ingest,kafka]'"
        ) from error
    from gnomon.kafka.hearsay import keep_to_ourselves
    from ingest.health import HealthServer
    from ingest.metrics import Metrics

    chosen = dataclasses.replace(
        worker_settings(settings),
        session_seconds=args.session_timeout,
        max_dead_letters=args.max_dead_letters,
        stop_seconds=args.stop_timeout,
    )
    keep_to_ourselves()
    metrics = Metrics()
    engines = [engine, *(engine.another() for _ in range(chosen.n_lanes - 1))]
    worker = Worker(chosen, engines, steps, metrics)
    health = HealthServer(worker.health, metrics.render, *listen(settings, args))
    health.start()
    reloader = reload_at_hangup(args, steps, metrics)
    started = time.monotonic()

    def ready() -> None:
        log.info("started group=%s health=%s/healthz", chosen.group, health.url)
        print(f"gnomon ingest: ready at {health.url}", flush=True)

    try:
        worker.run(stop, ready)
    finally:
        reloader.stop()
        health.stop()
    log.info("stopped after_seconds=%.0f", time.monotonic() - started)
    return 0


def wait_for_schema(settings: ClickHouseSettings, data_dir: Path, stop: threading.Event) -> "Engine | None":
    """
    Return a connection with the writer's rights once ClickHouse answers and has the schema; None when told to stop.

    Raises:
        SchemaNewer: this Gnomon is older than the schema.
        EmbeddedError: the configured credentials cannot be read.
    """
    from analytics.embedded import credentials
    from analytics.migrate import SchemaBehind, require_schema
    from ingest.engine import Engine
    from ingest.errors import EngineAway, EngineRefused

    told = ""
    while not stop.is_set():
        writer = credentials.read(data_dir, settings.user, settings.password_file)
        user, password = (writer.user, writer.password) if writer else ("", "")
        engine = Engine(settings.url, user, password, cluster=settings.cluster)
        try:
            require_schema(engine)
            return engine
        except SchemaBehind as error:
            waited_for, reason = "the schema", str(error)
        except (EngineAway, EngineRefused) as error:
            waited_for, reason = f"ClickHouse at {settings.url}", str(error)
        engine.close()
        if waited_for != told:  # not anew for each migration that runs meanwhile
            log.warning("waiting for %s: %s", waited_for, reason)
            told = waited_for
        stop.wait(0.3)
    return None
