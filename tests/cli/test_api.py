"""`gnomon api` as a user runs it: a child process that says where it is, reads its file again and ends in peace."""

import hashlib
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gnomon.supervisor import command
from tests.api.sse import heard
from tests.services import ROOT

TLS = ROOT / "tests" / "tls"
LINE = re.compile(r"gnomon api: ready at (https?)://127\.0\.0\.1:(\d+)\n")


class Service:
    """One configuration, and `gnomon api` with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "gnomon.yaml"
        self.process: subprocess.Popen[str] | None = None
        self.port = 0

    def configure(self, **api: object) -> None:
        upstream = {"id": "p1", "endpoint": "http://127.0.0.1:1", "evm": {"chainId": 1}}
        own = {"api": {"port": 0, **api}, "clickhouse": {"url": "http://127.0.0.1:9"}}
        self.config.write_text(json.dumps({"projects": [{"id": "main", "upstreams": [upstream]}], "gnomon": own}))

    def start(self) -> None:
        with (self.folder / "stderr").open("w") as err:
            self.process = subprocess.Popen(
                [*command("api"), "--config", str(self.config), "--data", str(self.folder / "data")],
                stdout=subprocess.PIPE, stderr=err, text=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        found = LINE.fullmatch(line := self.process.stdout.readline())
        assert found is not None, line + self.stderr()
        self.port = int(found[2])

    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    def get(self, path: str, token: str | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(30)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    it = Service(tmp_path)
    yield it
    if it.process is not None:
        it.process.kill()
        it.process.wait(10)
        assert it.process.stdout is not None
        it.process.stdout.close()


def until(condition: Callable[[], bool], explain: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, explain()
        time.sleep(0.05)


def write_token(folder: Path, token: str) -> str:
    file = folder / f"{token}.sha256"
    file.write_text(hashlib.sha256(token.encode()).hexdigest() + "  -\n")
    return file.name


@pytest.mark.e2e
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_whatever_clickhouse_does_and_ends_in_peace(service: Service, number: signal.Signals) -> None:
    """A free port is found and told; 200 at /healthcheck, 503 where rows are asked for; status 0."""
    service.configure()
    service.start()
    status, problem = service.get("/v1/spend")

    assert service.get("/healthcheck")[0] == 200
    assert (status, problem["type"]) == (503, "/problems/store-away")
    assert "gnomon up" in problem["detail"]
    assert service.end(number) == 0


@pytest.mark.e2e
def test_a_stream_is_ended_in_peace_at_the_end(service: Service) -> None:
    """SIGTERM gives an open stream its proper end at once; the service does not wait for its client to go."""
    service.configure(limits={"shutdown": "600s"})
    service.start()
    with heard(f"http://127.0.0.1:{service.port}") as stream:
        stream.event("hello")

        assert service.end() == 0
        assert stream.rest().replace(":\n\n", "") == ""


def test_a_hangup_reads_tokens_again(service: Service) -> None:
    """A file that cannot be used changes nothing; one that can is in force without a new process."""
    service.configure(tokens=[{"name": "a", "sha256File": write_token(service.folder, "one")}])
    service.start()
    assert service.process is not None

    assert [service.get("/v1/spend", token)[0] for token in (None, "one", "two")] == [401, 503, 401]
    service.config.write_text("{")
    service.process.send_signal(signal.SIGHUP)
    until(lambda: "the old one stays in force" in service.stderr(), service.stderr)
    assert service.get("/v1/spend", "one")[0] == 503
    service.configure(tokens=[{"name": "a", "sha256File": write_token(service.folder, "two")}])
    service.process.send_signal(signal.SIGHUP)
    until(lambda: service.get("/v1/spend", "two")[0] == 503, service.stderr)
    assert service.get("/v1/spend", "one")[0] == 401
    assert service.end() == 0


@pytest.mark.e2e
def test_tls_is_spoken(service: Service) -> None:
    """With the certificate of the configuration."""
    service.configure(tls={"cert": str(TLS / "cert.pem"), "key": str(TLS / "key.pem")})
    service.start()
    context = ssl.create_default_context(cafile=str(TLS / "cert.pem"))
    connection = http.client.HTTPSConnection("localhost", service.port, timeout=30, context=context)
    connection.request("GET", "/healthcheck")

    assert connection.getresponse().status == 200
    connection.close()
    assert service.end() == 0


def run(service: Service, *more: str) -> subprocess.CompletedProcess[str]:
    argv = [*command("api"), "--config", str(service.config), "--data", str(service.folder / "data"), *more]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.e2e
def test_what_it_cannot_start_with_is_told(service: Service) -> None:
    """A taken port with status 1; a token file that is not there, and tokens left out on a public port, with 2."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        service.configure()
        busy = run(service, "--port", str(port))
    service.configure(tokens=[{"name": "a", "sha256File": "none"}])
    missing = run(service)
    service.configure(host="0.0.0.0")
    public = run(service)

    assert (busy.returncode, busy.stdout) == (1, "")
    assert busy.stderr.startswith(f"gnomon: cannot listen on 127.0.0.1:{port}: ")
    assert missing.returncode == 2
    assert "`a`: sha256File" in missing.stderr
    assert public.returncode == 2
    assert "there are no api.tokens" in public.stderr


def test_starting_the_command_line_loads_no_web_framework() -> None:
    """Every other command starts without it, and so does its help."""
    code = (
        "import sys, gnomon.cli; gnomon.cli.build_parser('api'); gnomon.cli.build_parser('up')\n"
        "print([m for m in ('fastapi', 'pydantic', 'uvicorn', 'jinja2') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)

    assert ran.stdout.strip() == "[]"
