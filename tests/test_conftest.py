"""The rules for tests can fail: the blocker blocks, and a missing service is a failure in CI."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.blocker import Blocker, OutsideAddress, is_loopback
from tests.services import ROOT

SWALLOWS = """
import asyncio, contextlib, socket
from tests.blocker import OutsideAddress

def test_datagram():
    with contextlib.suppress(OutsideAddress), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.1", 9))

def test_stream():
    with contextlib.suppress(OutsideAddress):
        asyncio.run(asyncio.open_connection("192.0.2.1", 9))

def test_name():
    with contextlib.suppress(OutsideAddress):
        socket.getaddrinfo("node.example.org", 80)
"""


def run_pytest(folder: Path, text: str, ci: str) -> str:
    """Return the closing line of pytest over one file, under the rules of this suite."""
    (folder / "test_it.py").write_text(text)
    environment = {key: value for key, value in os.environ.items() if key != "CI"}
    broker = "127.0.0.1:1"  # nobody listens there
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
    ran = subprocess.run(
        [*command, "-p", "tests.conftest", "-p", "no:cacheprovider", str(folder / "test_it.py")],
        cwd=ROOT,
        env={**environment, "CI": ci, "GNOMON_TEST_KAFKA": broker},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ran.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        (None, True),
        (b"localhost", True),
        ("10.0.0.1", False),
        ("192.0.2.1", False),
        ("example.org", False),
        ("::2", False),
    ],
)
def test_only_loopback_is_allowed(host: object, expected: bool) -> None:
    """Private and public addresses and every name but localhost are outside."""
    assert is_loopback(host) is expected


def test_a_swallowed_call_outside_fails_the_test(tmp_path: Path) -> None:
    """Datagrams, streams and look-ups of names fail a test even where its code swallows the error."""
    assert "3 passed, 3 errors" in run_pytest(tmp_path, SWALLOWS, ci="")


def test_loopback_and_unix_sockets_work(tmp_path: Path) -> None:
    """What tests need is let through."""
    blocker = Blocker()
    with blocker.watching(), socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        with socket.socket(socket.AF_UNIX) as one, pytest.raises(FileNotFoundError):
            one.connect(str(tmp_path / "none"))

    assert blocker.refused == []


def test_an_outside_address_is_an_assertion() -> None:
    """The error is no OSError, so that code which retries on those does not go on."""
    assert not issubclass(OutsideAddress, OSError)


@pytest.mark.parametrize(("ci", "expected"), [("true", "1 error"), ("", "1 skipped")])
def test_a_missing_service_fails_in_ci(tmp_path: Path, ci: str, expected: str) -> None:
    """The same test fails where CI is set and is a visible skip elsewhere."""
    needs = "import pytest\n@pytest.mark.kafka\ndef test_it() -> None: pass\n"

    assert expected in run_pytest(tmp_path, needs, ci)
