"""The supervisor over stand-ins, all of them real processes: restarts, order, signals, nothing left behind."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.services import ROOT

pytestmark = pytest.mark.timeout(60)


class Supervised:
    """`tests.supervised supervisor` with the diary that its children write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._diary = folder / "diary"
        self._diary.touch()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str, stderr: int | None = None) -> "subprocess.Popen[bytes]":
        with (self._folder / "stdout").open("wb") as out, (self._folder / "stderr").open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.supervised", "supervisor", str(self._diary), *arguments],
                stdout=out,
                stderr=err if stderr is None else stderr,
                start_new_session=True,
                cwd=ROOT,
            )
        return self.process

    def diary(self) -> list[tuple[str, str, int]]:
        """Return (name, what, pid) in the order of writing."""
        entries = [line.split() for line in self._diary.read_text().splitlines()]
        return [(name, what, int(pid)) for name, what, pid in entries]

    def pids(self, what: str = "started") -> list[int]:
        return [pid for _, done, pid in self.diary() if done == what]

    def until_ready(self) -> None:
        until(lambda: "all ready" in self.stdout(), self.stderr)

    def stdout(self) -> str:
        return (self._folder / "stdout").read_text()

    def stderr(self) -> str:
        return (self._folder / "stderr").read_text()


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    it = Supervised(tmp_path)
    yield it
    if it.process is not None:
        if it.process.poll() is None:
            it.process.kill()
        it.process.wait(10)
        until(lambda: not any(is_alive(pid) for pid in it.pids()), it.stderr)


def until(condition: Callable[[], bool], explain: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, explain()
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_dead_child_is_started_again(supervised: Supervised) -> None:
    """Only the one that died, after a short pause, and its end is told."""
    supervised.start("proxy", "ingest")
    supervised.until_ready()
    first = {name: pid for name, _, pid in supervised.diary()}
    os.kill(first["ingest"], signal.SIGKILL)

    until(lambda: len(supervised.diary()) == 3, supervised.stderr)

    assert supervised.diary()[2][0] == "ingest"
    assert is_alive(first["proxy"])
    assert "ingest was killed by SIGKILL" in supervised.stderr()


def test_children_stop_in_order(supervised: Supervised) -> None:
    """The next is asked only when the one before has ended; the exit status is 0."""
    process = supervised.start("proxy,--linger=0.3", "ingest,--linger=0.2", "clickhouse")
    supervised.until_ready()
    process.terminate()

    assert process.wait(20) == 0
    assert [entry[:2] for entry in supervised.diary()[3:]] == [
        ("proxy", "asked"),
        ("proxy", "stopped"),
        ("ingest", "asked"),
        ("ingest", "stopped"),
        ("clickhouse", "asked"),
        ("clickhouse", "stopped"),
    ]


def test_control_c_of_the_whole_group_keeps_the_order(supervised: Supervised) -> None:
    """A terminal sends SIGINT to every process of the group; children wait for their turn."""
    process = supervised.start("proxy,--linger=0.3", "clickhouse")
    supervised.until_ready()
    os.killpg(process.pid, signal.SIGINT)

    assert process.wait(20) == 0
    assert [entry[:2] for entry in supervised.diary()[2:]] == [
        ("proxy", "asked"),
        ("proxy", "stopped"),
        ("clickhouse", "asked"),
        ("clickhouse", "stopped"),
    ]


def test_sighup_is_passed_on_to_those_that_reload(supervised: Supervised) -> None:
    """Nobody stops; whoever does not read its configuration again hears nothing of it."""
    process = supervised.start("proxy,--reloads", "clickhouse")
    supervised.until_ready()
    for n in (1, 2):
        process.send_signal(signal.SIGHUP)
        until(lambda n=n: len(supervised.pids("reloaded")) == n, supervised.stderr)  # type: ignore[misc]
    process.terminate()

    assert process.wait(20) == 0
    assert [entry[:2] for entry in supervised.diary()[2:4]] == [("proxy", "reloaded")] * 2
    assert "SIGHUP: passed on to proxy" in supervised.stderr()


def test_the_loss_of_the_terminal_stops_all(supervised: Supervised, tmp_path: Path) -> None:
    """As ever: who closes the window does not want it to run on."""
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover  (another process)
        os.chdir(ROOT)
        diary = str(tmp_path / "diary")
        os.execv(sys.executable, [sys.executable, "-m", "tests.supervised", "supervisor", diary, "proxy", "clickhouse"])
    until(lambda: len(supervised.pids()) == 2, supervised.diary)
    os.close(terminal)
    until(lambda: len(supervised.pids("stopped")) == 2, supervised.diary)
    until(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, supervised.diary)


def test_sigterm_of_the_whole_group_restarts_nothing(supervised: Supervised) -> None:
    """Children that end by themselves while the supervisor stops stay down."""
    process = supervised.start("proxy", "ingest", "clickhouse")
    supervised.until_ready()
    os.killpg(process.pid, signal.SIGTERM)

    assert process.wait(20) == 0
    assert len(supervised.pids()) == 3


def test_children_are_in_the_group_of_the_supervisor(supervised: Supervised) -> None:
    """One process group holds all."""
    process = supervised.start("proxy", "ingest")
    supervised.until_ready()

    assert {os.getpgid(pid) for pid in supervised.pids()} == {process.pid}


def test_children_die_with_a_killed_supervisor(supervised: Supervised) -> None:
    """SIGKILL gives it no moment to end them: the kernel does."""
    process = supervised.start("proxy,--stubborn", "ingest")
    supervised.until_ready()
    process.kill()
    process.wait(10)

    until(lambda: not any(is_alive(pid) for pid in supervised.pids()), supervised.diary, 5.0)


def test_a_second_signal_kills(supervised: Supervised) -> None:
    """A child that does not stop is not waited for any longer."""
    process = supervised.start("proxy,--stubborn", "ingest,--stubborn")
    supervised.until_ready()
    process.terminate()
    until(lambda: supervised.pids("asked") != [], supervised.stderr)
    process.terminate()

    assert process.wait(5) == 128 + signal.SIGTERM
    assert not any(is_alive(pid) for pid in supervised.pids())


def test_a_child_that_does_not_stop_in_time_is_killed(supervised: Supervised) -> None:
    """The others still stop in order, and the exit status is 0."""
    process = supervised.start("proxy,--stubborn", "ingest", "--stop-seconds", "0.3")
    supervised.until_ready()
    process.terminate()

    assert process.wait(20) == 0
    assert "proxy did not stop within 0.3 s: killed" in supervised.stderr()
    assert supervised.diary()[-1][:2] == ("ingest", "stopped")


@pytest.mark.parametrize(("status", "tries"), [(2, 1), (1, 2)], ids=["usage: at once", "failure: after some tries"])
def test_a_child_that_cannot_start_stops_all(supervised: Supervised, status: int, tries: int) -> None:
    """Its own reason is the message, its status ours; nothing else is left running."""
    process = supervised.start("proxy", f"ingest,--status={status}")

    assert process.wait(20) == status
    assert "gnomon: ingest cannot start: this is why" in supervised.stderr()
    assert len([name for name, what, _ in supervised.diary() if (name, what) == ("ingest", "started")]) >= tries
    assert not any(is_alive(pid) for pid in supervised.pids())


def test_a_child_waits_for_those_it_comes_after(supervised: Supervised) -> None:
    """A task that ends with status 0 is done, which is ready too."""
    supervised.start("clickhouse", "then-migrate,--status=0")
    supervised.until_ready()

    assert [entry[:2] for entry in supervised.diary()] == [("clickhouse", "started"), ("then-migrate", "started")]


def test_nobody_reading_stderr_blocks_nothing(supervised: Supervised) -> None:
    """Children write far more than a pipe holds while the pipe of the supervisor's stderr is full."""
    reading, writing = os.pipe()
    try:
        process = supervised.start("proxy,--flood=5000", "ingest", stderr=writing)
        until(lambda: supervised.pids("flooded") != [], supervised.diary)
        supervised.until_ready()
        process.terminate()

        assert process.wait(20) == 0
    finally:
        os.close(reading)
        os.close(writing)


def test_lines_carry_the_name_of_their_service(supervised: Supervised) -> None:
    """Overlong lines are cut into pieces, none is lost."""
    process = supervised.start("proxy,--flood=3", "clickhouse")
    supervised.until_ready()
    process.terminate()
    process.wait(20)

    lines = [line for line in supervised.stderr().splitlines() if line.startswith("proxy      | ")]
    assert sum(line.removeprefix("proxy      | ").count("x") for line in lines if "xxx" in line) == 300_000
    assert max(map(len, lines)) <= 8192 + len("proxy      | ")
    assert [line for line in lines if "line 2 of many" in line] != []
