"""
The shipper's process: a lane for each log below a folder, until SIGTERM; then what is in the logs is still sent, for
some seconds, and what could not be sent stays in them for the next one.
"""

import asyncio
import fcntl
import logging
import os
import resource
import signal
import time
from pathlib import Path
from typing import Final

from gnomon.config.model import KafkaSettings
from gnomon.errors import GnomonError
from proxy.shipper.lane import Lane

log = logging.getLogger("gnomon.shipper")

FLUSH_SECONDS: Final = 8.0
LOOK_SECONDS: Final = 1.0
"""How often new logs are looked for and the metrics are written."""
LOCK: Final = "shipper.lock"


class AlreadyShipped(GnomonError):
    """Another process ships this log."""


async def ship(root: Path, kafka: KafkaSettings) -> None:
    """
    Ship every log in a folder of `root` that is named by a number, those that come later too.

    Raises:
        AlreadyShipped: another process does.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # `keeper` has it wait for this
    # The terminal's go to the worker too, which lets go of us when it has written its last event.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lanes: dict[Path, tuple[Lane, asyncio.Task[None]]] = {}
    locks: list[int] = []
    stopped = asyncio.ensure_future(stop.wait())
    try:
        while not stop.is_set():
            for path in worker_logs(root):
                if path not in lanes:
                    locks.append(_lock(path))
                    lane = Lane(path, kafka, stop)
                    lanes[path] = (lane, asyncio.ensure_future(lane.run()))
            tasks = {task for _, task in lanes.values()}
            await asyncio.wait({stopped, *tasks}, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for lane, task in lanes.values():
                if task.done():
                    task.result()  # a lane ends by itself only by an error nobody expected
                _write(lane)
        await _flush(lanes)
    finally:
        stopped.cancel()
        for _, task in lanes.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in lanes.values()), return_exceptions=True)
        for lock in locks:
            os.close(lock)


async def _flush(lanes: dict[Path, tuple[Lane, "asyncio.Task[None]"]]) -> None:
    """Give the lanes their time to send what is there; those that Kafka takes nothing from get none."""
    deadline = time.monotonic() + FLUSH_SECONDS
    while time.monotonic() < deadline:
        working = {task for lane, task in lanes.values() if not task.done() and not lane.is_stalled}
        if not working:
            break
        await asyncio.wait(working, timeout=0.2)
    for path, (lane, task) in lanes.items():
        if not task.done():
            log.warning("not all was sent; it stays in the log log=%s waiting=%d", path, lane.lag)
        else:
            task.result()
        _write(lane)


def worker_logs(root: Path) -> list[Path]:
    """Return the logs of the workers: folders named by a number."""
    if not root.is_dir():
        return []
    return sorted(path for path in root.iterdir() if path.name.isdecimal() and path.is_dir())


def _write(lane: Lane) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    lane.counts.set("gnomon_shipper_lag_events", lane.lag)
    lane.counts.set("gnomon_shipper_cpu_seconds_total", used.ru_utime + used.ru_stime)
    lane.counts.write(lane.path)


def _lock(path: Path) -> int:
    fd = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise AlreadyShipped(f"event log {path}: another process ships it") from None
    return fd
