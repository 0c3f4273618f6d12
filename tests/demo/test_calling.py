"""The calls of the demonstration alone."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gnomon.cli import main
from gnomon.demo import calling
from gnomon.demo.clients import CallFailed, PlainClient
from tests.ports import free_port, free_ports

pytestmark = pytest.mark.e2e


@pytest.fixture
def upstreams(tmp_path: Path) -> Iterator[list[str]]:
    """Return the addresses of simulated nodes: primary, shadow, fallback."""
    arguments = ["--nodes", "--simulated", "--node-port", str(free_ports(3)), "--data", str(tmp_path / "demo")]
    said = tmp_path / "stderr"
    with (
        said.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "gnomon", "demo", *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(4)]
            urls = re.findall(r"http://\S+", "".join(lines[1:]))
            assert len(urls) == 3, said.read_text()
            yield urls
        finally:
            process.send_signal(signal.SIGTERM)


def test_calls_go_on_until_told_and_start_when_there_is_somebody(upstreams: list[str]) -> None:
    """Nobody there first is waited for; what is counted was answered."""
    stop = threading.Event()
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)

    threading.Timer(6.0, stop.set).start()
    traffic = calling.load(upstreams[2], "", 50.0, stop, say)

    assert traffic.calls > 20
    assert traffic.failed == 0, traffic.last_failure
    assert said[0] == f"calling {upstreams[2]}, 50 times a second"
    gone = threading.Event()
    threading.Timer(1.5, gone.set).start()
    assert calling.load(f"http://127.0.0.1:{free_port()}", "", 50.0, gone, say).calls == 0


def test_a_secret_goes_with_each_call(upstreams: list[str]) -> None:
    """In the header that the proxy looks at."""
    client = PlainClient(upstreams[0], "s3cret")

    assert client._headers["x-gnomon-secret"] == "s3cret"
    client.close()
    with pytest.raises(CallFailed):
        PlainClient(f"http://127.0.0.1:{free_port()}").height()


def test_what_cannot_be_used_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A secret that is not there."""
    assert main(["demo", "--load", "http://127.0.0.1:1", "--secret-file", str(tmp_path / "none")]) == 2
    assert "--secret-file" in capsys.readouterr().err
