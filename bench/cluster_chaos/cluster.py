"""
The processes of a cluster on this machine: broker, ClickHouse, proxy (with its shipper) and workers.

All commands are the product's own, under `launched`: their clock is behind the real one by less than a day, so that
midnight comes in the midst of the run. Not ahead, for Kafka refuses records from the future.
"""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analytics.embedded import credentials
from bench.cluster_chaos import script
from gnomon.events.log import LogStatus, status
from gnomon.process import child_environment
from ingest.engine import Engine
from tests.broker.local import LocalBroker
from tests.ports import free_port
from tests.proxy.shipper.shipping import children
from tests.services import ROOT

N_PARTITIONS = 4
SESSION_SECONDS = 3.0
START_SECONDS = 60.0
READY_SECONDS = 240.0
"""Longer than any start takes on a machine that others use too."""
STOP_SECONDS = 60.0
LOG_BYTES = "4GiB"
"""Room for what comes in five minutes without Kafka, at any rate that this machine can serve."""


class ClusterFailed(Exception):
    """A process did not do what it must; the message has the end of what it said."""


class Process:
    """One command that comes and goes."""

    def __init__(self, name: str, command: list[str], output: Path) -> None:
        self.name = name
        self._command = command
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None
        self._from = 0

    @property
    def pid(self) -> int:
        """The process id of the last start."""
        assert self._process is not None
        return self._process.pid

    @property
    def ended_by_itself(self) -> int | None:
        """The status of a process that nobody has ended; None while it lives, or when it was ended."""
        return self._process.poll() if self._process is not None else None

    def start(self, *, wait: bool = True) -> None:
        """Start it; by default return when it says that it is ready."""
        self._from = self._output.stat().st_size if self._output.exists() else 0
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=ROOT,
                env=child_environment(),
            )  # fmt: skip
        if wait:
            wait_for(self.is_ready, READY_SECONDS, lambda: f"{self.name} is not ready: {self.said()[-3000:]}")

    def is_ready(self) -> bool:
        """Return whether it said so."""
        if self._process is not None and (code := self._process.poll()) is not None:
            raise ClusterFailed(f"{self.name} ended with {code}: {self.said()[-3000:]}")
        return re.search(r": ready at http", self.said()) is not None

    def said(self) -> str:
        """Return what it said since it was started."""
        with self._output.open("rb") as output:
            output.seek(self._from)
            return output.read().decode("utf-8", "replace")

    def kill(self) -> None:
        """`kill -9`."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; return the status."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ClusterFailed(f"{self.name} did not end within {STOP_SECONDS} s: {self.said()[-3000:]}") from None

    def pause(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)


class Cluster:
    """See the module's text. A context manager; use it on the main thread: the kernel ends all with that."""

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: for everything; empty.
        """
        self.folder = folder
        self._clock = folder / "clock"
        self._set_clock(0.0)
        self.broker = LocalBroker(folder / "broker")
        self.proxy_port = free_port()
        self.clickhouse_port = free_port()
        self.config = folder / "gnomon.yaml"
        self.clickhouse = self._process("clickhouse")
        self.proxy = self._process("proxy", "--port", str(self.proxy_port))
        self.workers: list[Process] = []
        self.unexpected: Counter[str] = Counter()
        """What ended by itself, and how."""
        self.kills: list[float] = []
        """When the proxy was killed (monotonic): what was under way then may have no end."""

    def __enter__(self) -> "Cluster":
        self.broker.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.workers, self.proxy, self.clickhouse):
            process.kill()
        self.broker.stop()

    def end_day_in(self, seconds: float) -> None:
        """Set the processes' clock so that it is midnight after so long."""
        self._set_clock(back_to_midnight(time.time(), seconds))

    def move_clock(self, seconds: float) -> None:
        """Set the processes' clock ahead."""
        self._set_clock(struct.unpack("d", self._clock.read_bytes())[0] + seconds)

    def _set_clock(self, seconds: float) -> None:
        with self._clock.open("r+b" if self._clock.exists() else "wb") as file:
            file.write(struct.pack("d", seconds))

    def _process(self, service: str, *arguments: str, die_behind: str = "-", name: str = "") -> Process:
        command = [
            sys.executable, "-m", "bench.cluster_chaos.launched", str(self._clock), die_behind, service,
            "--config", str(self.config), "--data", str(self.folder / "data"), *arguments,
        ]  # fmt: skip
        return Process(name or service, command, self.folder / f"{name or service}.log")

    def worker(self, die_behind: str = "-") -> Process:
        """Return a new worker, not started."""
        arguments = ["--session-timeout", str(SESSION_SECONDS), "--clickhouse-url", self._worker_url]
        self._n_workers += 1
        return self._process("ingest", *arguments, die_behind=die_behind, name=f"worker-{self._n_workers}")

    def alerts(self) -> Process:
        """Return an alert service, not started."""
        return self._process("alerts")

    _n_workers = 0
    _worker_url = ""

    def begin(
        self, endpoints: dict[str, str], late_port: int, n_workers: int, more: dict[str, Any] | None = None
    ) -> None:
        """
        Write the configuration, start everything, make schema and topics.

        Args:
            endpoints: addresses of the upstreams.
            late_port: of the workers' way to ClickHouse.
            n_workers: how many.
            more: further members of `gnomon` in the configuration.
        """
        self._worker_url = f"http://127.0.0.1:{late_port}"
        config: dict[str, Any] = {
            "projects": [script.configuration(endpoints)],
            "gnomon": {
                **(more or {}),
                "clickhouse": {"url": f"http://127.0.0.1:{self.clickhouse_port}"},
                "events": {
                    "log": {"maxBytes": LOG_BYTES},
                    "kafka": {"bootstrapServers": self.broker.address, "partitions": N_PARTITIONS},
                },
            },
        }
        self.config.write_text(json.dumps(config))
        self.clickhouse.start()
        ran = self.gnomon("migrate", "--data", str(self.folder / "data"))
        if ran.returncode:
            raise ClusterFailed(f"migrate: {ran.stderr}")
        self.end_day_in(START_SECONDS * 2)
        self.workers = [self.worker() for _ in range(n_workers)]
        for process in (*self.workers, self.proxy):
            process.start(wait=False)
        for process in (*self.workers, self.proxy):
            wait_for(process.is_ready, READY_SECONDS, process.said)

    def gnomon(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a `gnomon` command of this cluster to its end, by the real clock."""
        command = [sys.executable, "-m", "gnomon", *arguments, "--config", str(self.config)]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)

    def shippers(self) -> list[int]:
        """Return the process ids of the proxy's shippers: one, or none."""
        try:
            return children(self.proxy.pid, b"shipper")
        except (FileNotFoundError, ProcessLookupError, AssertionError):
            return []

    def look(self) -> None:
        """Start again what ended by itself, as a supervisor would, and remember it."""
        for process in (*self.workers, self.proxy, self.clickhouse):
            if (code := process.ended_by_itself) is not None:
                self.unexpected[f"{process.name.partition('-')[0]} ended with {code}"] += 1
                process.start(wait=False)

    @property
    def log(self) -> LogStatus:
        """The proxy's log on disk."""
        return status(self.folder / "data" / "events" / "0")

    def rows(self, sql: str) -> list[list[str]]:
        """Ask ClickHouse, not by the late way."""
        with self._engine() as engine:
            return engine.rows(sql)

    def command(self, sql: str) -> None:
        """Have ClickHouse do something."""
        with self._engine() as engine:
            engine.command(sql)

    @contextmanager
    def _engine(self) -> Iterator[Engine]:
        writer = credentials.read(self.folder / "data", "", "")
        assert writer is not None
        engine = Engine(f"http://127.0.0.1:{self.clickhouse_port}", writer.user, writer.password)
        try:
            yield engine
        finally:
            engine.close()


def back_to_midnight(now: float, seconds: float) -> float:
    """Return what to add to the clock, at most 0, so that a UTC day ends `seconds` from `now`."""
    at = datetime.fromtimestamp(now, UTC)
    since_midnight = at.hour * 3600 + at.minute * 60 + at.second + at.microsecond / 1e6
    back = since_midnight + seconds
    return -(back - 86_400 if back > 86_400 else back)


def wait_for(condition: Callable[[], bool], seconds: float, why: Callable[[], str] = lambda: "") -> None:
    """Return when the condition holds; raise ClusterFailed after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterFailed(f"not within {seconds:.0f} s: {why()}")
        time.sleep(0.1)
