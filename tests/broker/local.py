"""
One Apache Kafka broker as a JVM on this machine, on ports and in a folder of its own.

Killed and started again it has the same ports and what it had stored, as a broker in a cluster would. It ends with the
thread that started it: start it on the main thread.
"""

import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from string import Template
from typing import Final

from gnomon.process import child_environment
from tests.broker import jars
from tests.ports import free_port
from tests.services import ROOT

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 20.0
CLUSTER_ID: Final = "Z25vbW9uLWJyb2tlci0wMA"
"""Any 16 bytes in base64."""
_CONFIGURATION: Final = ROOT / "deploy" / "kafka"
_JVM: Final = (
    "-Xms128m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+PerfDisableSharedMem",
    f"-Dlog4j2.configurationFile={_CONFIGURATION / 'log4j2.properties'}",
)
"""A broker that starts in 3 s and takes 300 MiB; its own throughput is not what tests measure."""


class BrokerFailed(Exception):
    """The broker did not start; the message has the end of what it said."""


class LocalBroker:
    """See the module's text. A context manager: started on entry, stopped and its folder removed on exit."""

    def __init__(self, folder: Path, *, port: int = 0, extra: str = "", scram: str = "") -> None:
        """
        Args:
            folder: for its data, its configuration and what it says; made when it is not there.
            port: where clients reach it; 0 finds a free one.
            extra: further lines of `server.properties`; a later line wins, and $second_port is one more port.
            scram: a user that is known from the beginning, as `kafka-storage.sh --add-scram` takes it.
        """
        self.folder = folder
        self.port = port or free_port()
        self.second_port = free_port()
        self._extra = extra
        self._scram = ["--add-scram", scram] if scram else []
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """What clients are told: `host:port`."""
        return f"127.0.0.1:{self.port}"

    @property
    def output(self) -> Path:
        """The file with what the broker says."""
        return self.folder / "broker.log"

    def __enter__(self) -> "LocalBroker":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """
        Start it, the first time or again, and return when it takes connections.

        Raises:
            BrokerFailed: it ended, took longer than a minute, or somebody else has its port.
        """
        if self.is_listening():
            raise BrokerFailed(f"somebody listens on {self.address} already")
        properties = self.folder / "server.properties"
        if not properties.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            text = (_CONFIGURATION / "server.properties").read_text("utf-8") + self._extra
            names = {"port": self.port, "controller_port": free_port(), "second_port": self.second_port}
            properties.write_text(Template(text).substitute(names, folder=self.folder))
            self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties), *self._scram)
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gnomon.demo.tether", *self._java("kafka.Kafka", str(properties))],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=child_environment(),
                cwd=ROOT,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.is_listening():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise BrokerFailed(f"no broker at {self.address}:\n{self._said()}")
            time.sleep(0.05)

    def is_listening(self) -> bool:
        """Return whether the broker takes connections."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as one:
                # The kernel may choose this very port for our end, and we would have reached ourselves.
                return bool(one.getsockname() != one.getpeername())
        except OSError:
            return False

    def stop(self) -> None:
        """Have it end in good order; what takes too long is killed."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """`kill -9`; what the kernel has of its data stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Stop its threads: connections stay open and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on after `pause`."""
        self._signal(signal.SIGCONT)

    def wait(self) -> int:
        """Wait until it ends by itself, and return its status."""
        assert self._process is not None
        return self._process.wait()

    @property
    def pid(self) -> int:
        """The process id of the JVM."""
        assert self._process is not None
        return self._process.pid

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _java(self, *arguments: str) -> list[str]:
        return ["java", *_JVM, "-cp", f"{jars.folder()}/*", *arguments]

    def _run(self, *arguments: str) -> None:
        ran = subprocess.run(self._java(*arguments), capture_output=True, text=True, timeout=START_SECONDS, check=False)
        if ran.returncode:
            raise BrokerFailed(f"{arguments[0]} ended with status {ran.returncode}:\n{ran.stdout}{ran.stderr}")

    def _said(self) -> str:
        return "\n".join(self.output.read_text("utf-8", "replace").splitlines()[-20:])
