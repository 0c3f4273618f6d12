"""The embedded ClickHouse as users start it: `gnomon clickhouse`, a child process that can be killed."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from email.message import Message
from pathlib import Path

from analytics.embedded.credentials import Credentials, read
from analytics.store import Store

GNOMON = (sys.executable, "-c", "import sys; from gnomon.cli import main; sys.exit(main())")


class ClickHouse:
    """One data folder and, while it runs, the process that serves it."""

    def __init__(self, folder: Path) -> None:
        self.data_dir = folder
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it on a free port; return when it answers."""
        config = self.data_dir / "gnomon.yaml"
        config.write_text(
            "projects: [{id: main, upstreams: [{id: p1, endpoint: 'http://127.0.0.1:1', evm: {chainId: 31337}}]}]\n"
            "gnomon: {clickhouse: {url: 'http://127.0.0.1:0'}}\n"
        )
        self._process = subprocess.Popen(
            [*GNOMON, "clickhouse", "--data", str(self.data_dir), "--config", str(config)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"ready at (http://127\.0\.0\.1:\d+) ", line)
        assert found is not None, line
        self.url = found[1]
        # For commands that read their configuration.
        config.write_text(config.read_text().replace("http://127.0.0.1:0", self.url))

    @property
    def config(self) -> Path:
        """A configuration that names the running process."""
        return self.data_dir / "gnomon.yaml"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def writer(self) -> Credentials:
        found = read(self.data_dir, "", "")
        assert found is not None
        return found

    def store(self) -> Store:
        """Return a new connection with the writer's rights."""
        return Store.connect(self.url, self.writer.user, self.writer.password, database="gnomon_core")

    def reader(self) -> Store:
        """Return a new connection with a reader's rights."""
        return Store.connect(self.url)

    def ask(
        self,
        sql: str | bytes | None,
        parameters: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        is_writer: bool = False,
        path: str = "/",
        method: str | None = None,
    ) -> tuple[int, Message, bytes]:
        """Send one request as curl would; return status, headers and body."""
        head = dict(headers or {})
        if is_writer:
            head |= {"X-ClickHouse-User": self.writer.user, "X-ClickHouse-Key": self.writer.password}
        query = urllib.parse.urlencode(dict(parameters or {}))
        data = sql.encode() if isinstance(sql, str) else sql
        request = urllib.request.Request(f"{self.url}{path}?{query}", data=data, headers=head, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it; return its exit status."""
        assert self._process is not None
        os.kill(self._process.pid, number)
        status = self._process.wait(30)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None
        return status
