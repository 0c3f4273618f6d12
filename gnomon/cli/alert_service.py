"""
`gnomon alerts` without an action: the service, alone or as a child of `gnomon up`.

SIGHUP reads the configuration again: rules, receivers and accounts, with everything that fires as it is; a file that
cannot be used leaves the old ones in force and says so. Over one ClickHouse one service leads, others stand by
(analytics.alerting.lease).
"""

import argparse
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from analytics.alerting.asking import Asker
from analytics.alerting.delivery import Delivery, stop_all
from analytics.alerting.export import render
from analytics.alerting.gauges import clock_sample, log_samples
from analytics.alerting.history import History
from analytics.alerting.leading import Leadership, holder_of
from analytics.alerting.opening import connect
from analytics.alerting.rules import in_force
from analytics.alerting.scraping import Scraper
from analytics.alerting.service import BLIND, Keeper, Reports, Sample, Service
from analytics.embedded.lock import FolderLock
from analytics.migrate import SchemaBehind
from analytics.store import StoreError
from gnomon import logs
from gnomon.config.load import load
from gnomon.config.receivers import Receiver, parse
from gnomon.errors import GnomonError
from gnomon.supervisor import has_terminal
from ingest.health import HealthServer
from ingest.settings import log_root

if TYPE_CHECKING:
    from analytics.alerting.rules import Rule
    from gnomon.config.model import ClickHouseSettings, Settings

log = logging.getLogger("gnomon.alerts")

RETRY_SECONDS = 0.3


def serve(
    args: argparse.Namespace, settings: "Settings", clickhouse: "ClickHouseSettings", rules: "tuple[Rule, ...]"
) -> int:
    """Run the service until SIGTERM or SIGINT; return the exit status."""
    logs.start(settings.log_level)
    data_dir = Path(args.data)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    lock = None
    if data_dir.is_dir():
        lock = FolderLock(data_dir, data_dir / "alerts.lock")
        lock.acquire("gnomon alerts")
    leadership = Leadership(
        holder_of(data_dir if lock is not None else None), socket.gethostname(), lambda: connect(clickhouse, data_dir)
    )
    program = _Program(args, settings, clickhouse, rules, leadership)
    program.on_hangup(stop)
    if not _wait(lambda: connect(clickhouse, data_dir).close(), stop):
        return 0
    service = program.service
    for delivery in service.deliveries:
        delivery.start()
    chosen = settings.gnomon.health
    port = chosen.alerts_port if args.health_port is None else args.health_port
    server = HealthServer(program.health, program.metrics, port, chosen.host)
    server.start()
    leadership.start()
    print(f"gnomon alerts: ready at {server.url}", flush=True)
    try:
        is_idle = service.run(stop)
    finally:
        server.stop()
        program.scraper.stop()
        stop_all(service.deliveries)
        service.write_down()
        leadership.stop()
        if lock is not None:
            lock.release()
    if not is_idle:
        _leave()
    return 0


def _leave() -> None:
    """End although a statement is running: all is written down, and ClickHouse ends what nobody waits for."""
    log.info("stopped with a rule's statement running")
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def _wait(open_store: Callable[[], None], stop: threading.Event) -> bool:
    """Wait for ClickHouse and its schema; return False when told to stop."""
    told = ""
    while not stop.is_set():
        try:
            open_store()
            return True
        except SchemaBehind as error:
            trouble = f"waiting for the schema: {error}"
        except StoreError as error:
            trouble = f"waiting for ClickHouse: {error}"
        if trouble != told:
            log.warning("%s", trouble)
            told = trouble
        stop.wait(RETRY_SECONDS)
    return False


class _Program:
    """The service, and what it is configured by."""

    def __init__(
        self,
        args: argparse.Namespace,
        settings: "Settings",
        clickhouse: "ClickHouseSettings",
        rules: "tuple[Rule, ...]",
        leadership: Leadership,
    ) -> None:
        self._args = args
        self._settings = settings
        self._clickhouse = clickhouse
        self._leadership = leadership
        self._data_dir = Path(args.data)
        self._n_reloads = {"ok": 0, "invalid": 0}
        self._had_terminal = has_terminal()
        self.scraper = Scraper(settings.gnomon.alerts.proxies)
        self.scraper.start()
        reports = Reports()

        def deliver(receiver: Receiver) -> Delivery:
            return Delivery(receiver, reports.put, may_send=self._may_send)

        self.service = Service(
            rules,
            Asker(clickhouse, settings.gnomon.pricing.accounts).ask,
            lambda: History(connect(clickhouse, self._data_dir)),
            [deliver(receiver) for receiver in receivers_of(settings)],
            reports,
            self._sample,
            deliver=deliver,
            between_rounds=self._reload,
            is_leading=lambda: leadership.is_leading,
            may_act=leadership.may_act,
        )

    # --- reading again ------------------------------------------------------------------------------------------------

    def on_hangup(self, stop: threading.Event) -> None:
        """Reload at SIGHUP, unless it tells that the terminal is gone: then stop."""

        def hang_up(*_: object) -> None:
            if self._had_terminal and not has_terminal():
                stop.set()
            else:
                self.service.stir()

        signal.signal(signal.SIGHUP, hang_up)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})

    def _reload(self) -> None:
        try:
            settings = load(self._args.config, allow_insecure=self._args.allow_insecure)
            rules, receivers = in_force(settings), receivers_of(settings)
        except GnomonError as error:
            log.error("the configuration cannot be used, the old one stays in force: %s", error)
            self._n_reloads["invalid"] += 1
            return
        for warning in settings.warnings:
            log.warning("%s", warning)
        old, new = self._settings.gnomon, settings.gnomon
        for name, is_other in (
            ("gnomon.clickhouse", old.clickhouse != new.clickhouse),
            ("gnomon.events.log", old.events.log != new.events.log),
        ):
            if is_other:
                log.warning("%s cannot change at run time: restart for it", name)
        kept = msgspec.structs.replace(
            new,
            clickhouse=old.clickhouse,
            events=msgspec.structs.replace(new.events, log=old.events.log),
        )
        self._settings = msgspec.structs.replace(settings, gnomon=kept)
        if old.alerts.proxies != new.alerts.proxies:
            self.scraper.stop()
            self.scraper = Scraper(new.alerts.proxies)
            self.scraper.start()
        self.service.reconfigure(rules, receivers, Asker(self._clickhouse, new.pricing.accounts).ask)
        logging.getLogger().setLevel(logs.LEVELS[settings.log_level])
        self._n_reloads["ok"] += 1
        log.info("configuration reloaded rules=%d receivers=%d", len(rules), len(receivers))

    # --- what others ask for ------------------------------------------------------------------------------------------

    def _may_send(self, rule: str) -> bool:
        # That nobody can ask is told by whoever sees it: the one who leads may be gone with the store.
        return rule == BLIND or self._leadership.may_act()

    def _sample(self, keeper: Keeper) -> list[Sample]:
        before = datetime.now(UTC)
        theirs = keeper.clock()
        samples = [clock_sample(before, theirs, datetime.now(UTC), self._place)]
        if self._settings.gnomon.alerts.proxies:
            # Every service could ask the same proxies: one does.
            return [*(self.scraper.samples() if self._leadership.is_leading else ()), *samples]
        log_settings = self._settings.gnomon.events.log
        return [*log_samples(log_root(self._settings, self._data_dir), log_settings.max_bytes, self._place), *samples]

    @property
    def _place(self) -> str:
        """What tells this machine's samples from another's; nothing where there is only one machine."""
        return socket.gethostname() if self._settings.gnomon.events.kafka is not None else ""

    def health(self) -> tuple[bool, str]:
        """Return whether every rule can be asked, and more as JSON."""
        failing = {name: round(seconds, 1) for name, seconds in self.service.failing_seconds.items()}
        return not failing, json.dumps(
            {"rules": len(self.service.rules), "failing_seconds": failing, "is_leading": self._leadership.is_leading}
        )

    def metrics(self) -> str:
        """Return all metrics in Prometheus' text format."""
        return render(self.service, self._leadership.is_leading, self._n_reloads)


def receivers_of(settings: "Settings") -> list[Receiver]:
    """Return the configured receivers."""
    alerts = settings.gnomon.alerts
    return parse(alerts.receivers, lambda *_: None, Path(alerts.folder))
