"""The embedded ClickHouse as a child process that can be killed and started again at the same address."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from analytics.migrate import migrate
from gnomon.config.model import Retention
from ingest.engine import Engine

GNOMON = (sys.executable, "-c", "import sys; from gnomon.cli import main; sys.exit(main())")
"""The command, whatever the PATH."""


@contextmanager
def migrated_engine(folder: Path) -> "Iterator[EngineProcess]":
    """Run one with the schema in it, until the block ends."""
    process = EngineProcess(folder)
    process.start()
    try:
        process.migrate()
        yield process
    finally:
        process.stop()


class EngineProcess:
    """`gnomon clickhouse` over one data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.config = folder / "gnomon.yaml"
        self.config.write_text(
            "projects: [{id: main, upstreams: [{id: p1, endpoint: 'http://127.0.0.1:1', evm: {chainId: 31337}}]}]\n"
            f"gnomon: {{clickhouse: {{url: 'http://127.0.0.1:{self.port}'}}}}\n"
        )
        self._process: subprocess.Popen[str] | None = None
        self._connections: list[Engine] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it; return when it answers."""
        self._process = subprocess.Popen(
            [*GNOMON, "clickhouse", "--data", str(self.folder), "--config", str(self.config)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert re.search(r"ready at http", line), line

    def credentials(self) -> tuple[str, str]:
        """Return the writer's user and password."""
        secrets = self.folder / "secrets"
        return (
            (secrets / "clickhouse-user").read_text().strip(),
            (secrets / "clickhouse-password").read_text().strip(),
        )

    def connect(self) -> Engine:
        """Return a connection with the writer's rights."""
        engine = Engine(self.url, *self.credentials())
        self._connections.append(engine)
        return engine

    def migrate(self) -> None:
        """Create the schema."""
        migrate(self.connect(), Retention(rows_seconds=1e9, bodies_seconds=1e9, rollups_seconds=1e9))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Have it answer nobody until the block ends."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL it."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in peace, and close every connection to it."""
        for engine in self._connections:
            engine.close()
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            os.kill(self._process.pid, number)
            self._process.wait(30)
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None
