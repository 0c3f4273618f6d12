"""
The whole demonstration: nodes, configuration, `gnomon up`, traffic, a status line, the summary.

Everything that is started is a child that the kernel ends with us, and is ended in order on every way out.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import aiohttp

from gnomon.demo import settings, summary
from gnomon.demo.clients import open_client, preload
from gnomon.demo.errors import DemoError, NodeFailed, NodesUnavailable
from gnomon.demo.installation import find_or_install
from gnomon.demo.measures import Counts, Findings, Measures, NotReadable
from gnomon.demo.real import RealWorld
from gnomon.demo.simulated import SimulatedWorld
from gnomon.demo.standing_in import stand_in
from gnomon.demo.traffic import Scene, Traffic
from gnomon.demo.world import BLOCK_SECONDS, World
from gnomon.process import child_environment

READY_SECONDS: Final = 60.0
DRAIN_SECONDS: Final = 15.0
"""How long the last events may take into ClickHouse."""
STOP_SECONDS: Final = 20.0
"""How long `up` may take to stop before it is killed."""
CALLS_PER_SECOND: Final = 80.0
_ENTRY: Final = "import sys; from gnomon.cli import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for."""

    seconds: float
    folder: Path
    """It is there."""
    simulated: bool = False
    keep: bool = False
    calls_per_second: float = CALLS_PER_SECOND
    node_port: int | None = None
    """Nothing but the nodes, the primary at this port; None = the whole demonstration."""
    node_host: str = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Talk:
    """How the run speaks: lines that stay, a line that changes, and results."""

    say: Callable[[str], None]
    update: Callable[[str], None]
    result: Callable[[str], None]


async def demo(options: Options, talk: Talk) -> list[str]:
    """
    Run the demonstration; return what it should have shown and did not.

    Raises:
        DemoError: it could not go on.
    """
    async with aiohttp.ClientSession() as session:
        world, started = await _open_world(session, options, talk)
        try:
            if options.node_port is not None:
                await stand_in(world, options.node_port, talk.result, options.node_host)
            return await _with_world(world, started, options, talk)
        finally:
            await asyncio.shield(world.stop())


async def _open_world(session: aiohttp.ClientSession, options: Options, talk: Talk) -> tuple[World, float]:
    """Return real nodes where they can be had, else the simulated chain; and when the installs were done."""
    started = time.monotonic()
    why = "--simulated was given"
    if not options.simulated:
        try:
            installation = await find_or_install(dict(os.environ), talk.say)
            started = time.monotonic()
            talk.say(f"starting anvil, {installation.shadow} and a second anvil")
            world = await RealWorld.open(session, installation, options.folder / "nodes")
        except (NodesUnavailable, NodeFailed) as exc:
            why = str(exc)
        else:
            talk.say(f"real nodes: {world.primary.version} (primary), {world.shadow.version} (shadow)")
            return world, started
    talk.say(f"NO REAL NODES: a built-in simulated chain with planted differences takes their place ({why})")
    return await SimulatedWorld.open(session), started


async def _with_world(world: World, started: float, options: Options, talk: Talk) -> list[str]:
    ports = settings.choose_ports()
    config = settings.write(world, ports, options.folder)
    since = datetime.now(UTC)
    async with _up(config, options.folder, talk) as process:
        _, client_name = await asyncio.gather(_ready(process, ports, options.folder), asyncio.to_thread(preload))
        talk.say(f"proxy {ports.proxy_url}   SQL {ports.clickhouse_url}")
        scene = Scene(world.register, world.accounts, world.height)
        traffic = Traffic(lambda: open_client(ports.proxy_url), scene, per_second=options.calls_per_second)
        watch = _Watch(ports.clickhouse_url, since, started)
        try:
            traffic.start()
            await _live(world, scene, traffic, watch, process, options, talk)
            traffic.stop()
            await asyncio.to_thread(traffic.join, 5.0)
            found = await _drain(watch, process, options.folder, talk)
        finally:
            traffic.stop()
            watch.close()
        facts = summary.Facts(
            kind=world.kind,
            primary=world.primary,
            shadow=world.shadow,
            fallback=world.fallback,
            client=client_name,
            seconds=options.seconds,
            calls=traffic.calls,
            failed_calls=traffic.failed,
            last_failure=traffic.last_failure,
            withheld=world.withheld,
            refused=world.refused,
            first_divergence_seconds=watch.first_divergence_seconds,
        )
        talk.result(summary.render(facts, found))
        talk.result(
            summary.where(options.folder, config, ports.clickhouse_url, summary.program(), is_kept=options.keep)
        )
        if options.keep:
            await _keep(world, process, options.folder, talk)
        return summary.shortfalls(facts, found)


class _Watch:
    """Asks ClickHouse in a thread, one question at a time, and remembers when the first divergence was seen."""

    def __init__(self, url: str, since: datetime, started: float) -> None:
        self._url = url
        self._since = since
        self._started = started
        self._measures: Measures | None = None
        self.counts = Counts()
        self.first_divergence_seconds: float | None = None

    async def look(self) -> None:
        """Bring `counts` up to date; raises `NotReadable`."""
        self.counts = await asyncio.to_thread(self._open_and_count)
        if self.counts.final_mismatches and self.first_divergence_seconds is None:
            self.first_divergence_seconds = time.monotonic() - self._started

    def _open_and_count(self) -> Counts:
        self._measures = self._measures or Measures(self._url, self._since)
        return self._measures.counts()

    async def all(self) -> Findings:
        """Return what the summary needs; raises `NotReadable`."""
        assert self._measures is not None
        return await asyncio.to_thread(self._measures.all)

    def close(self) -> None:
        """Close the connections."""
        if self._measures is not None:
            self._measures.close()


async def _live(
    world: World,
    scene: Scene,
    traffic: Traffic,
    watch: _Watch,
    process: asyncio.subprocess.Process,
    options: Options,
    talk: Talk,
) -> None:
    """Mine, measure and show until the time is over."""
    begin = time.monotonic()
    end = begin + options.seconds
    miner = asyncio.create_task(_mine(world, scene))
    try:
        while time.monotonic() < end:
            try:
                await watch.look()
                is_unreadable = False
            except NotReadable:
                is_unreadable = True
            _check_alive(process, options.folder)
            if miner.done():
                miner.result()
            talk.update(_status(time.monotonic() - begin, options.seconds, watch, traffic, is_unreadable))
            await asyncio.sleep(max(0.0, min(0.5, end - time.monotonic())))
    finally:
        miner.cancel()
        with suppress(asyncio.CancelledError, DemoError):
            await miner


async def _mine(world: World, scene: Scene) -> None:
    """Add a block at every node, at a steady pace whatever else is slow, until cancelled."""
    block_at = time.monotonic()
    while True:
        block_at += BLOCK_SECONDS
        await asyncio.sleep(max(0.0, block_at - time.monotonic()))
        await world.advance()
        scene.height = world.height


def _status(elapsed: float, total: float, watch: _Watch, traffic: Traffic, is_unreadable: bool) -> str:
    counts = watch.counts
    first = watch.first_divergence_seconds
    parts = [
        f"{min(elapsed, total):.0f}/{total:.0f} s",
        f"{traffic.calls} calls",
        f"{counts.requests} requests stored",
        f"{counts.pairs} pairs",
        f"{counts.mismatches} mismatches",
        f"{counts.paid_calls} paid calls",
    ]
    if first is not None:
        parts.append(f"first divergence at {first:.1f} s")
    if is_unreadable:
        parts.append("waiting for ClickHouse")
    return " · ".join(parts)


async def _drain(watch: _Watch, process: asyncio.subprocess.Process, folder: Path, talk: Talk) -> Findings:
    """
    Wait until the last events are stored, then return what was found.

    Raises:
        DemoError: ClickHouse gave no answer.
    """
    end = time.monotonic() + DRAIN_SECONDS
    before = Counts()
    while True:
        try:
            await watch.look()
            is_quiet = watch.counts == before and watch.counts.pairs >= watch.counts.mirrored
            if is_quiet or time.monotonic() > end:
                return await watch.all()
            before = watch.counts
        except NotReadable as exc:
            _check_alive(process, folder)
            if time.monotonic() > end:
                raise DemoError(f"ClickHouse does not answer: {exc}; see {folder / 'up.log'}") from exc
        talk.update(f"waiting for the last events: {watch.counts.pairs} of {watch.counts.mirrored} pairs")
        await asyncio.sleep(0.5)


async def _keep(world: World, process: asyncio.subprocess.Process, folder: Path, talk: Talk) -> None:
    """Go on, without traffic, until the user ends it."""
    talk.say("everything keeps running; Ctrl-C ends it")
    while True:
        await asyncio.sleep(BLOCK_SECONDS)
        await world.advance()
        _check_alive(process, folder)


@asynccontextmanager
async def _up(config: Path, folder: Path, talk: Talk) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `gnomon up` as a child in a session of its own; end it, and all of its own, on the way out."""
    log = folder / "up.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _ENTRY, "up", "--config", str(config), "--data", str(folder)),
            env=child_environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        await asyncio.shield(_stop(process, talk))


async def _stop(process: asyncio.subprocess.Process, talk: Talk) -> None:
    """Let `up` drain and end; kill its whole session when it takes too long."""
    if process.returncode is None:
        talk.update("stopping")
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _check_alive(process: asyncio.subprocess.Process, folder: Path) -> None:
    if process.returncode is not None:
        log = folder / "up.log"
        tail = log.read_text(errors="replace").strip().splitlines()[-3:]
        raise DemoError(f"`gnomon up` ended with status {process.returncode}: {' / '.join(tail)[:400]}; see {log}")


async def _ready(process: asyncio.subprocess.Process, ports: settings.Ports, folder: Path) -> None:
    """
    Wait until the proxy listens.

    Raises:
        DemoError: `up` ended, or took too long.
    """
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        _check_alive(process, folder)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", ports.proxy)
            writer.write(b"GET /healthcheck HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            async with asyncio.timeout(2.0):
                line = await reader.readline()
            writer.close()
            if b" 200 " in line:
                return
        except (OSError, TimeoutError):
            pass
        await asyncio.sleep(0.1)
    raise DemoError(f"`gnomon up` was not ready in {READY_SECONDS:.0f} s; see {folder / 'up.log'}")
