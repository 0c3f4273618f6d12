"""The process: one per folder, gone with its parent, nothing lost at its death, fenced for the sink."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.analytics.server import GNOMON, ClickHouse

pytestmark = pytest.mark.clickhouse

KEY = "ab12:gnomon.responses.v1:0"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ClickHouse]:
    """Return an engine that this test may kill."""
    server = ClickHouse(tmp_path)
    server.start()
    yield server
    if server.is_running:
        server.stop(signal.SIGKILL)


def insert(
    server: ClickHouse, epoch: int, values: str, table: str = "events", columns: str = "", key: str = KEY
) -> bytes:
    """Insert under the mark; return the answer's body."""
    sql = f"/*fence:{key} {epoch}*/INSERT INTO gnomon_core.{table} {columns} FORMAT TabSeparated\n{values}"
    return server.ask(sql, is_writer=True)[2]


def take_over(server: ClickHouse, epoch: int, key: str = KEY) -> bytes:
    log_id, topic, part = key.split(":")
    return insert(
        server, epoch, f"{log_id}\t{topic}\t{part}\t{epoch}\n", "sink_epochs", "(log_id, topic, part, epoch)", key
    )


def make_tables(server: ClickHouse) -> None:
    with server.store() as store:
        store.command("CREATE TABLE gnomon_core.events (off UInt64) ENGINE = MergeTree ORDER BY off")
        store.command(
            "CREATE TABLE gnomon_core.sink_epochs (log_id String, topic String, part UInt16, epoch UInt64) "
            "ENGINE = MergeTree ORDER BY (log_id, topic, part, epoch)"
        )


def count(server: ClickHouse) -> int:
    with server.store() as store:
        ((n,),) = store.rows("SELECT count() FROM gnomon_core.events")
    return int(n)


def test_only_the_newest_owner_inserts(own: ClickHouse) -> None:
    """By SQL at first, then from memory, then by SQL again after a restart."""
    make_tables(own)
    assert b"fenced" in insert(own, 1, "1\n")
    assert take_over(own, 5) == b""
    assert insert(own, 5, "1\n") == b""
    assert b"fenced" in insert(own, 4, "2\n")
    assert b"fenced" in insert(own, 6, "2\n")
    assert b"fenced" in take_over(own, 5)
    assert take_over(own, 7) == b""
    assert b"fenced" in insert(own, 5, "2\n")
    assert take_over(own, 1, "other:t:0") == b""

    own.stop(signal.SIGKILL)
    own.start()

    assert b"fenced" in insert(own, 5, "2\n")
    assert insert(own, 7, "2\n") == b""
    assert count(own) == 2


def test_inserts_of_a_key_never_overlap(own: ClickHouse) -> None:
    """The new owner's epoch row waits for the old one's insert; what comes behind it is refused."""
    make_tables(own)
    take_over(own, 1)
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda i: insert(own, 1, f"{i}\n") if i != 20 else take_over(own, 2), range(40)))
        stored = count(own)
    late = insert(own, 1, "99\n")

    n_stored = sum(answer == b"" for answer in answers) - 1
    assert n_stored == stored
    assert b"fenced" in late
    assert all(b"fenced" in answer for answer in answers if answer)


@pytest.mark.parametrize("key", ["nokey", "a:b:c"])
def test_a_broken_mark_stores_nothing(own: ClickHouse, key: str) -> None:
    """A sink with a wrong key must not run unfenced."""
    make_tables(own)

    assert b"BAD_ARGUMENTS" in insert(own, 1, "1\n", key=key)
    assert count(own) == 0


def test_a_large_fenced_insert_is_one_part(own: ClickHouse) -> None:
    """20 MB in one request: read whole first, so the lock is not held for a slow client."""
    make_tables(own)
    take_over(own, 1)
    assert insert(own, 1, "".join(f"{i:020d}\n" for i in range(900_000))) == b""
    with own.store() as store:
        parts = store.rows("SELECT rows FROM system.parts WHERE table = 'events' AND active")

    assert parts == [(900_000,)]


def test_acknowledged_rows_survive_sigkill(own: ClickHouse) -> None:
    """Three times in a row, while inserts are running."""
    make_tables(own)
    acknowledged: set[int] = set()

    def work(start: int) -> None:
        for i in range(start, start + 1_000_000):
            try:
                status, _, _ = own.ask(f"INSERT INTO gnomon_core.events VALUES ({i})", is_writer=True)
            except OSError:
                return
            if status == 200:
                acknowledged.add(i)

    for round_number in range(3):
        before = len(acknowledged)
        worker = threading.Thread(target=work, args=(round_number * 1_000_000,))
        worker.start()
        deadline = time.monotonic() + 20
        while len(acknowledged) < before + 30 and time.monotonic() < deadline:
            time.sleep(0.01)
        own.stop(signal.SIGKILL)
        worker.join()
        own.start()
    with own.store() as store:
        rows = [off for (off,) in store.rows("SELECT off FROM gnomon_core.events")]

    assert len(acknowledged) >= 90
    assert acknowledged <= set(rows)
    assert len(rows) == len(set(rows))
    assert len(set(rows) - acknowledged) <= 3


def test_a_second_process_says_who_has_the_folder(own: ClickHouse) -> None:
    """And leaves the first alone."""
    ran = subprocess.run(
        [*GNOMON, "clickhouse", "--data", str(own.data_dir), "--config", str(own.config)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 1
    assert f"in use by pid {own.pid}" in ran.stderr
    assert ran.stdout == ""
    assert own.ask(None, path="/ping")[0] == 200


def test_a_taken_port_is_named(own: ClickHouse, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With the setting that chooses another."""
    folder = tmp_path_factory.mktemp("other")
    ran = subprocess.run(
        [*GNOMON, "clickhouse", "--data", str(folder), "--config", str(own.config)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 1
    assert "gnomon.clickhouse.url" in ran.stderr


def test_sigterm_lets_inserts_finish_and_ends_queries(own: ClickHouse) -> None:
    """Exit 0 within seconds, the insert stored, the endless query cut."""
    make_tables(own)
    answers: dict[str, int] = {}

    def ask(name: str, sql: str) -> None:
        answers[name] = own.ask(sql, is_writer=True)[0]

    running = [
        threading.Thread(
            target=ask,
            args=(
                "insert",
                "INSERT INTO gnomon_core.events SELECT number + sleepEachRow(0.5) FROM numbers(3) "
                "SETTINGS max_block_size = 1",
            ),
        ),
        threading.Thread(
            target=ask, args=("query", "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1")
        ),
    ]
    for thread in running:
        thread.start()
    time.sleep(0.7)
    started = time.monotonic()

    assert own.stop(signal.SIGTERM) == 0
    assert time.monotonic() - started < 7
    for thread in running:
        thread.join()
    assert answers["insert"] == 200
    assert answers["query"] != 200
    own.start()
    assert count(own) == 3


def test_the_engine_dies_with_its_parent(tmp_path: Path) -> None:
    """An orphan would keep port and folder."""
    server = ClickHouse(tmp_path)
    server.start()
    server.stop()
    code = (
        "import subprocess, sys, time\n"
        "from gnomon.process import child_environment\n"
        f"p = subprocess.Popen({[*GNOMON, 'clickhouse', '--data', str(tmp_path), '--config', str(server.config)]!r},"
        " env=child_environment(), stdout=subprocess.PIPE, text=True)\n"
        "p.stdout.readline(); print(p.pid, flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while is_alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Say whether a process runs; one that is dead but not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_engine_is_niced_and_in_utc(own: ClickHouse) -> None:
    """It shares its cores with the proxy; columns without zone are UTC whatever the host's is."""
    assert os.getpriority(os.PRIO_PROCESS, own.pid) == 19
    for thread in Path(f"/proc/{own.pid}/task").iterdir():
        assert int((thread / "stat").read_text().rpartition(")")[2].split()[16]) == 19
    assert own.ask("SELECT timezone(), toString(toDateTime(0))")[2] == b"UTC\t1970-01-01 00:00:00\n"


@pytest.mark.parametrize("is_fenced", [True, False])
def test_an_insert_that_cannot_be_stored_is_not_called_stored(own: ClickHouse, is_fenced: bool) -> None:
    """The part's folder cannot be made, as on a full disk: an error, and the sink will send the rows again."""
    make_tables(own)
    take_over(own, 1)
    with own.store() as store:
        ((paths,),) = store.rows(
            "SELECT data_paths[1] FROM system.tables WHERE database = 'gnomon_core' AND name = 'events'"
        )
    folder = Path(str(paths).rstrip("/"))
    shutil.rmtree(folder)
    folder.write_text("no folder")
    mark = f"/*fence:{KEY} 1*/" if is_fenced else ""

    status, headers, body = own.ask(f"{mark}INSERT INTO gnomon_core.events FORMAT TabSeparated\n1\n", is_writer=True)

    assert status >= 400, body
    assert headers["X-ClickHouse-Exception-Code"]
    assert count(own) == 0
