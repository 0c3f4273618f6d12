"""`gnomon proxy` under load and signals: what was accepted is answered, and every event is in the log."""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gnomon.events.codec import decode
from gnomon.events.contract import AnyEvent, PrimaryResponse, ShadowResponse
from gnomon.events.log import Reader
from tests.proxy.scripted import PATH, Upstream, configuration, result

pytestmark = pytest.mark.timeout(60)


class Running:
    """A proxy as a process, its clients and its log."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, folder: Path) -> None:
        self.process = process
        self.port = port
        self._folder = folder
        self.n_answered = 0
        self.lost: list[str] = []
        self.stopped_at = 0.0

    def signal(self, number: signal.Signals) -> None:
        self.stopped_at = self.stopped_at or time.monotonic()
        self.process.send_signal(number)

    async def client(self, pause_seconds: float = 0.0) -> None:
        """Ask on kept connections until none can be made; a request that was sent and not answered is lost."""
        head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        n = 0
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                return
            n_here = 0
            try:
                while True:
                    n += 1
                    n_here += 1
                    body = b'{"jsonrpc":"2.0","id":%d,"method":"eth_getBalance","params":["0x1","0x10"]}' % n
                    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                    top = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                    await reader.readexactly(int(top.partition("content-length:")[2].partition("\r\n")[0]))
                    assert top.startswith("http/1.1 200")
                    self.n_answered += 1
                    if "connection: close" in top:
                        break
                    await asyncio.sleep(pause_seconds)
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                # The one moment nobody can close: a connection made while the listener goes away.
                if self.stopped_at and n_here == 1:
                    return
                self.lost.append(f"{n}: {error!r}")
                return
            finally:
                writer.close()

    def events(self) -> list[AnyEvent]:
        reader = Reader(str(self._folder / "data" / "events" / "0"))
        found: list[AnyEvent] = []
        while records := reader.read()[1]:
            found += [decode(record) for record in records]
        reader.close()
        return found

    async def ended(self) -> tuple[int | None, str]:
        """Wait for the end; return status and messages."""
        _, messages = await asyncio.wait_for(self.process.communicate(), 30)
        return self.process.returncode, messages.decode()


@contextlib.asynccontextmanager
async def proxy(config: str, folder: Path) -> AsyncIterator[Running]:
    file = folder / "gnomon.yaml"
    file.write_text(config)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gnomon", "proxy", "--config", str(file), "--data", str(folder / "data")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        ready = await asyncio.wait_for(process.stdout.readline(), 30)
        yield Running(process, int(ready.rsplit(b":", 1)[1]), folder)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until(condition: Any, seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  (the condition is somebody else's state)
            await asyncio.sleep(0.02)


async def _stop_under_load(folder: Path, number: signal.Signals) -> None:
    primary, shadow = await Upstream().start(), await Upstream(latest=100).start()
    primary.delay_seconds, shadow.delay_seconds = 0.02, 0.3
    async with proxy(configuration([primary], shadows=[shadow], timeout="5s"), folder) as running:
        clients = [asyncio.ensure_future(running.client(0.01 * (i % 3))) for i in range(12)]
        await until(lambda: running.n_answered > 150)
        running.signal(number)
        await asyncio.wait_for(asyncio.gather(*clients), 20)
        status, messages = await running.ended()

        assert status == 0, messages
        assert running.lost == []
        events = running.events()
        requests = [e for e in events if isinstance(e, PrimaryResponse)]
        pairs = [e for e in events if isinstance(e, ShadowResponse)]
        assert len(requests) == running.n_answered == len(primary.calls)
        assert {request.outcome for request in requests} == {"result"}
        mirrored = {r.request_id for r in requests if r.shadows["s0"] == "mirrored"}
        assert {pair.request_id for pair in pairs} == mirrored
        assert {pair.attempt.outcome for pair in pairs} == {"result"}
        assert len(shadow.calls) == len(mirrored) > 100
        assert "cut at shutdown" not in messages
        assert sorted(int(event.event_id.split(":")[1]) for event in events) == list(range(len(events)))
    for node in (primary, shadow):
        await node.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_under_load_loses_nothing(number: signal.Signals, tmp_path: Path) -> None:
    """Accepted requests are answered, mirrored calls awaited, every event written; the status is 0."""
    asyncio.run(_stop_under_load(tmp_path, number))


async def _stop_twice(folder: Path) -> None:
    primary, shadow = await Upstream().start(), await Upstream(lambda _: None).start()
    async with proxy(configuration([primary], shadows=[shadow], timeout="9s"), folder) as running:
        clients = [asyncio.ensure_future(running.client(0.01)) for _ in range(2)]
        await until(lambda: len(shadow.calls) >= 20)
        running.signal(signal.SIGTERM)
        await asyncio.wait_for(asyncio.gather(*clients), 20)
        await asyncio.sleep(0.7)
        assert running.process.returncode is None  # it waits for the shadow
        running.signal(signal.SIGTERM)
        second = time.monotonic()
        status, messages = await running.ended()

        assert status == 0, messages
        assert time.monotonic() - second < 8
        events = running.events()
        pairs = [e for e in events if isinstance(e, ShadowResponse)]
        assert len(pairs) == running.n_answered == len(shadow.calls)
        assert {(pair.attempt.outcome, pair.attempt.is_cancelled) for pair in pairs} == {("cancelled", True)}
        assert f"cut at shutdown clients=0 mirrored_calls={len(pairs)}" in messages
    for node in (primary, shadow):
        await node.stop()


def test_a_second_signal_cuts_what_is_under_way(tmp_path: Path) -> None:
    """It is recorded as cancelled, and counted in the log."""
    asyncio.run(_stop_twice(tmp_path))


async def _reload_under_load(folder: Path) -> None:
    first = await Upstream(lambda q: result(q, "first")).start()
    second = await Upstream(lambda q: result(q, "second")).start()
    for node in (first, second):
        node.delay_seconds = 0.01
    texts = [configuration([first]), configuration([second])]
    file = folder / "gnomon.yaml"
    async with proxy(texts[0], folder) as running:
        clients = [asyncio.ensure_future(running.client()) for _ in range(6)]
        for i in range(6):
            before = running.n_answered
            await until(lambda before=before: running.n_answered > before + 30)
            file.write_text(texts[(i + 1) % 2])
            running.process.send_signal(signal.SIGHUP)
            node = (second, first)[i % 2]
            n = len(node.calls)
            await until(lambda node=node, n=n: len(node.calls) > n)
        file.write_text("{")
        running.process.send_signal(signal.SIGHUP)
        before = running.n_answered
        await until(lambda: running.n_answered > before + 60)
        running.signal(signal.SIGTERM)
        await asyncio.wait_for(asyncio.gather(*clients), 20)
        status, messages = await running.ended()

        assert status == 0, messages
        assert running.lost == []
        assert messages.count("configuration reloaded") == 6
        assert "the old one stays in force" in messages
        requests = [e for e in running.events() if isinstance(e, PrimaryResponse)]
        assert len(requests) == running.n_answered == len(first.calls) + len(second.calls)
        assert {request.outcome for request in requests} == {"result"}
        assert len({request.config_hash for request in requests}) == 2
    for node in (first, second):
        await node.stop()


def test_sighup_under_load_loses_nothing(tmp_path: Path) -> None:
    """Six reloads and an invalid one, clients on kept connections; then the proxy stops as ever."""
    asyncio.run(_reload_under_load(tmp_path))
