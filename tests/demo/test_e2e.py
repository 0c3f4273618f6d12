"""The whole demonstration as a child process: it shows what it planted, and leaves nothing behind."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

COMMAND = [sys.executable, "-c", "import sys; from gnomon.cli import main; sys.exit(main())", "demo"]


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "--data", str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def processes_about(folder: Path) -> list[str]:
    """Return the command lines, of anybody, that name the data folder or run in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            place = os.readlink(entry / "cwd")
        except OSError:
            continue
        if str(folder) in command or place.startswith(str(folder)):
            found.append(command)
    return found


def assert_nothing_is_left(folder: Path) -> None:
    end = time.monotonic() + 10.0
    while processes_about(folder) and time.monotonic() < end:
        time.sleep(0.1)
    assert processes_about(folder) == []


@pytest.mark.clickhouse
@pytest.mark.parametrize("kind", ["simulated", pytest.param("real", marks=pytest.mark.nodes)])
def test_shows_what_it_planted(tmp_path: Path, kind: str) -> None:
    """Status 0, the differences and the paid calls in the summary, and nothing running afterwards."""
    process = start(tmp_path, "--seconds", "15", *(["--simulated"] if kind == "simulated" else []))
    out, err = process.communicate(timeout=150)

    assert process.returncode == 0, err
    assert "empty_at_head" in out
    assert "$.result[*].blockTimestamp  missing_field" in out
    assert re.search(r"the first real divergence was in SQL after \d+\.\d s", out)
    assert out.count("gnomon query --config") == 3
    assert f"the data lies in {tmp_path}" in err
    assert ("NO REAL NODES" in err) == (kind == "simulated")
    assert_nothing_is_left(tmp_path)


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes through /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("turn", range(3))
def test_ends_at_any_moment(tmp_path: Path, number: signal.Signals, turn: int) -> None:
    """Ended at any moment, in order or by force, it leaves nothing running; in order it says where the data is."""
    process = start(tmp_path, "--seconds", "60", "--simulated")
    assert process.stderr is not None
    assert "data goes to" in process.stderr.readline()
    time.sleep(random.uniform(0.0, 6.0))
    process.send_signal(number)
    _, err = process.communicate(timeout=60)

    if number != signal.SIGKILL:
        assert process.returncode == 130, err
        assert f"nothing is running, the data lies in {tmp_path}" in err
    assert_nothing_is_left(tmp_path)
