"""
What docker-compose.yml says, started as processes: same commands, same environment, same files.

Only where things are differs: names of hosts and their ports become ports of loopback, paths in a container become
paths in a folder. Kafka's image is the broker of the tests with the settings of the file, ClickHouse's is the embedded
engine with the configuration of our services.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.broker.local import LocalBroker
from tests.deploy.tools import effective
from tests.ports import free_port, free_ports
from tests.services import ROOT

IMAGE_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "TZ": "UTC"}
"""ENV of the Dockerfile, but for the PATH."""
_ELSEWHERE = ("LISTENER", "QUORUM_VOTERS", "NODE_ID", "PROCESS_ROLES", "LOG_DIRS", "HEAP_OPTS")
"""Settings of Kafka that say where it is, which differ here."""


class Instance:
    """One container, as a process."""

    def __init__(self, stack: "Stack", service: str, number: int) -> None:
        self.service = service
        self.ports: dict[str, int] = {}
        self.is_stopped = False
        self._stack = stack
        self._definition = stack.services[service]
        self._said = stack.folder / f"{service}-{number}.log"
        environment = {name: stack.mapped(value) for name, value in (self._definition.get("environment") or {}).items()}
        command = [stack.mapped(part, self) for part in self._definition["command"]]
        with self._said.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gnomon", *command],
                cwd=stack.folder,
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": "/nonexistent",
                    "PYTHONFAULTHANDLER": "1",
                    **IMAGE_ENVIRONMENT,
                    **environment,
                },
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def said(self) -> str:
        """Return all it said."""
        return self._said.read_text("utf-8", "replace")

    def is_healthy(self) -> bool:
        """Run the health check of the file."""
        kind, program, *rest = self._definition["healthcheck"]["test"]
        assert (kind, program) == ("CMD", "python")
        command = [sys.executable, *(self._stack.mapped(part, self) for part in rest)]
        ran = subprocess.run(command, capture_output=True, timeout=30, check=False)
        return ran.returncode == 0

    def get(self, port: str, path: str, **headers: str) -> tuple[int, str]:
        """Return status and text of an address, by its port in the container."""
        request = urllib.request.Request(f"http://127.0.0.1:{self._stack.port(port, self)}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, port: str, name: str) -> float:
        """Return a metric, the sum over its labels; -1 while nobody answers."""
        try:
            _, text = self.get(port, "/metrics")
        except OSError:
            return -1.0
        lines = [line for line in text.splitlines() if re.match(rf"{name}[ {{]", line)]
        return sum(float(line.split()[-1]) for line in lines)

    def stop(self) -> int:
        """End it as Docker would; return its status, or fail when Docker would have killed it."""
        self.is_stopped = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        grace = self._definition.get("stop_grace_period", "10s")
        try:
            return self.process.wait(float(grace.rstrip("s")) if "m" not in grace else 60)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # says where its threads are
            self.process.wait(10)
            raise AssertionError(f"{self.service} did not end within {grace}:\n{self.said()[-6000:]}") from None


class Stack:
    """All of it; use as a context manager."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.services: dict[str, Any] = effective("demo", "tools", environment=environment)["services"]
        self.instances: list[Instance] = []
        self._common: dict[str, int] = {}
        compose = ROOT / "deploy" / "compose"
        shutil.copytree(compose, folder / "compose", ignore=shutil.ignore_patterns("secrets"))
        self.make_secrets()
        self.secrets = folder / "compose" / "secrets"
        self.broker = LocalBroker(folder / "kafka", extra=self._kafka_settings())
        self._clickhouse: subprocess.Popen[bytes] | None = None

    def _kafka_settings(self) -> str:
        lines = []
        for name, value in self.services["kafka"]["environment"].items():
            if name.startswith("KAFKA_") and not any(part in name for part in _ELSEWHERE):
                lines.append(f"{name.removeprefix('KAFKA_').lower().replace('_', '.')}={value}")
        return "\n".join(lines) + "\n"

    def port(self, name: str, instance: Instance | None = None) -> int:
        """Return the port that stands for one in a container; workers' health ports are each one's own."""
        if name == "9092":
            return self.broker.port
        if name.startswith("855"):
            # Three in a row.
            first = self._common.setdefault("8551", free_ports(3))
            return first + int(name) - 8551
        ports = instance.ports if instance is not None and name.startswith("946") else self._common
        if name not in ports:
            ports[name] = free_port()
        return ports[name]

    def mapped(self, text: str, instance: Instance | None = None) -> str:
        """Return a text of the file as it is here."""
        text = text.replace("/run/secrets", str(self.secrets)).replace("/var/lib/gnomon", str(self.folder / "events"))
        text = text.replace("/etc/gnomon/gnomon.yaml", str(self.folder / "gnomon.yaml"))
        text = re.sub(
            r"\b(?:kafka|clickhouse|proxy|upstreams|127\.0\.0\.1|0\.0\.0\.0):(\d{4})\b",
            lambda match: f"127.0.0.1:{self.port(match[1], instance)}",
            text,
        )
        return re.sub(
            r"(?<=port: )\d{4}|\A(?:946|855)\d\Z|(?<=127\.0\.0\.1', )\d{4}",
            lambda match: str(self.port(match[0], instance)),
            text,
        )

    def __enter__(self) -> "Stack":
        self.configure()
        return self

    def configure(self, *changes: tuple[str, str]) -> None:
        """Write the configuration, some of it otherwise."""
        text = (self.folder / "compose" / "gnomon.yaml").read_text("utf-8")
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        (self.folder / "gnomon.yaml").write_text(self.mapped(text))

    def make_secrets(self, *anew: str) -> None:
        """Run the script."""
        subprocess.run(["sh", "make-secrets.sh", *anew], cwd=self.folder / "compose", check=True, capture_output=True)

    def __exit__(self, *_: object) -> None:
        for instance in reversed(self.instances):
            if instance.process.poll() is None:
                instance.process.kill()
                instance.process.wait(20)
        self.stop_clickhouse()
        self.broker.kill()

    def start_kafka(self) -> None:
        """Start the broker with the settings of the file."""
        self.broker.start()

    def start_clickhouse(self) -> None:
        """Start the embedded engine at the address of the configuration, with its writer's credentials."""
        environment = {name: self.mapped(v) for name, v in self.services["ingest"]["environment"].items()}
        command = [
            "clickhouse",
            "--config",
            str(self.folder / "gnomon.yaml"),
            "--data",
            str(self.folder / "clickhouse"),
        ]
        with (self.folder / "clickhouse.log").open("ab") as output:
            self._clickhouse = subprocess.Popen(
                [sys.executable, "-m", "gnomon", *command],
                env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        url = f"http://127.0.0.1:{self.port('8123')}/ping"

        def answers() -> bool:
            try:
                with urllib.request.urlopen(url, timeout=5) as answer:
                    return bool(answer.status == 200)
            except OSError:
                return False

        until(answers, 60, lambda: (self.folder / "clickhouse.log").read_text("utf-8", "replace"))

    def stop_clickhouse(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the engine."""
        if self._clickhouse is not None:
            self._clickhouse.send_signal(number)
            self._clickhouse.wait(30)
            self._clickhouse = None

    def up(self, service: str, n: int = 1) -> list[Instance]:
        """Start a service, after what it depends on is as the file wants it; return its containers."""
        started = []
        for other, wanted in (self.services[service].get("depends_on") or {}).items():
            before = [instance for instance in self.instances if instance.service == other]
            if other in ("kafka", "clickhouse"):
                continue
            assert before, f"{service} needs {other}"
            if wanted["condition"] == "service_completed_successfully":
                assert before[0].process.wait(90) == 0, before[0].said()
            else:
                until(before[0].is_healthy, 60, before[0].said)
        for _ in range(n):
            instance = Instance(self, service, len(self.instances))
            self.instances.append(instance)
            started.append(instance)
        return started

    def cli(self, *command: str) -> tuple[int, str, str]:
        """Run a command of gnomon by hand: `docker compose run --rm cli …`."""
        environment = {name: self.mapped(v) for name, v in self.services["cli"]["environment"].items()}
        ran = subprocess.run(
            [sys.executable, "-m", "gnomon", *command, "--config", str(self.folder / "gnomon.yaml")],
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return ran.returncode, ran.stdout, ran.stderr

    def ask(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a query, or none while it cannot be answered."""
        status, text, _ = self.cli("query", "--sql", sql, "--format", "json")
        rows: list[dict[str, Any]] = json.loads(text) if status == 0 else []
        return rows

    def said(self) -> str:
        """Return what everybody said last."""
        return "\n".join(f"--- {one.service}\n{one.said()[-2000:]}" for one in self.instances)


def until(condition: Callable[[], bool], seconds: float, why: Callable[[], str] = lambda: "") -> None:
    """Return when the condition holds; fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {why()}"
        time.sleep(0.2)
