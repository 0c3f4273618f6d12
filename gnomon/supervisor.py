"""
Children that belong together: started, started again when they die, stopped in order, never left behind.

    waiting ──(all of `after` ready)──► running ──(ready line, or at once)──► ready
       ▲                                   │ ends
       └──(0.2 s growing to 5 s)───────────┤
                                           ├─ a task with status 0: done
                                           └─ never ready, and status 2 or failing for `startup_seconds`: all stop

All run in the supervisor's process group. Ctrl-C goes to every member of it, so children have SIGINT and SIGHUP
blocked: the supervisor asks each to stop in its turn. SIGHUP is passed on to children that read their configuration
again, unless it tells that the terminal is gone: then it stops all. Each child asks the kernel to end it with the
supervisor (`gnomon.process.die_with_parent`), which holds for SIGKILL too.
"""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gnomon.errors import GnomonError
from gnomon.process import child_environment
from gnomon.relay import Relay

FIRST_DELAY_SECONDS: Final = 0.2
MAX_DELAY_SECONDS: Final = 5.0
HEALTHY_SECONDS: Final = 30.0
"""Alive for so long, a child's next death is its first again."""
STARTUP_SECONDS: Final = 10.0
"""A child may fail for so long before it was ever ready: what ran here before may need a while to let go."""
MAX_LINE_BYTES: Final = 8192
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_BLOCKED_IN_CHILDREN: Final = (signal.SIGINT, signal.SIGHUP)


class ServiceFailed(GnomonError):
    """A child cannot start; the others were stopped."""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        self.exit_status = exit_status


@dataclass(frozen=True, slots=True)
class Service:
    """One child."""

    name: str
    command: Callable[[Mapping[str, str]], Sequence[str]]
    """Gives the command line at each start, from the addresses (by name of service) that ready lines named so far."""
    ready: re.Pattern[str] | None = None
    """A line of its stdout that says that it is ready, with the group `address`; None: ready when it runs."""
    after: tuple[str, ...] = ()
    """Services that must be ready before each start."""
    is_task: bool = False
    """Ends by itself: status 0 is done, anything else is tried again."""
    environment: Mapping[str, str] = field(default_factory=dict)
    reloads: bool = False
    """It unblocks SIGHUP, and reads its configuration again then."""
    stop_seconds: float = 10.0
    """Time to stop after SIGTERM, before SIGKILL."""


@dataclass(slots=True)
class _State:
    process: asyncio.subprocess.Process | None = None
    is_ready: bool = False
    was_ready: bool = False
    is_done: bool = False
    ready_at: float = 0.0
    failing_since: float | None = None
    delay: float = FIRST_DELAY_SECONDS
    last_line: str = ""


class Supervisor:
    """Runs services until a signal; one use."""

    def __init__(
        self,
        services: Sequence[Service],
        output: Relay,
        on_ready: Callable[[Mapping[str, str]], None],
        *,
        startup_seconds: float = STARTUP_SECONDS,
    ) -> None:
        """
        Args:
            services: in the order in which they are stopped; all start at once, as far as `after` lets them.
            output: gets what children print, each line with the name of its service, and our own messages.
            on_ready: called once, when all are ready, with the addresses by name of service.
            startup_seconds: how long a child may fail before it was ever ready.
        """
        self._services = tuple(services)
        self._states = {service.name: _State() for service in services}
        self._output = output
        self._on_ready = on_ready
        self._startup_seconds = startup_seconds
        self._width = max((len(service.name) for service in services), default=0)
        self._is_announced = False
        self._addresses: dict[str, str] = {}
        self._stop = asyncio.Event()
        self._changed = asyncio.Condition()
        self._killed_by: signal.Signals | None = None
        self._failure: ServiceFailed | None = None
        self._has_terminal = has_terminal()

    async def run(self) -> int:
        """
        Run until SIGTERM, SIGINT or the loss of the terminal, then stop all in order; return the exit status.

        A second signal kills what is left at once.

        Raises:
            ServiceFailed: a service cannot start; all were stopped.
        """
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        keepers = {
            service.name: asyncio.ensure_future(self._guard(service, self._keep(service))) for service in self._services
        }
        await self._stop.wait()
        for service in self._services:
            await self._end(service, keepers[service.name])
        if self._killed_by is not None:
            return 128 + self._killed_by
        if self._failure is not None:
            raise self._failure
        return 0

    def say(self, text: str) -> None:
        """Print a message of the supervisor's own."""
        self._output.line(f"{'up':{self._width}} | {text}".encode())

    # --- life of one child --------------------------------------------------------------------------------------------

    async def _guard(self, service: Service, keeping: Coroutine[object, object, None]) -> None:
        """Have an error of ours end everything, not leave one service unattended."""
        try:
            await keeping
        except OSError as error:
            self._fail(ServiceFailed(f"cannot start {service.name}: {error}", 1))
        except Exception:
            self._fail(ServiceFailed(f"the supervisor of {service.name} failed", 1))
            raise

    async def _keep(self, service: Service) -> None:
        state = self._states[service.name]
        while await self._dependencies(service):
            started_at = time.monotonic()
            status = await self._run_once(service, state)
            alive_seconds = time.monotonic() - started_at
            await self._set_ready(state, False)
            if self._stop.is_set():
                return
            if service.is_task and status == 0:
                state.is_done = True
                await self._set_ready(state, True)
                return
            if failure := self._verdict(service, state, status, started_at):
                self._fail(failure)
                return
            if alive_seconds >= HEALTHY_SECONDS:
                state.delay = FIRST_DELAY_SECONDS
            self.say(f"{service.name} {_ending(status)} after {alive_seconds:.1f} s; again in {state.delay:.1f} s")
            await self._sleep(state.delay)
            state.delay = min(MAX_DELAY_SECONDS, state.delay * 2)

    async def _dependencies(self, service: Service) -> bool:
        """Wait until the service may start; return whether it still should."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._stop.is_set() or all(self._states[name].is_ready for name in service.after)
            )
        return not self._stop.is_set()

    async def _run_once(self, service: Service, state: _State) -> int:
        """Start the child and return its status when it has ended and all that it printed is passed on."""
        process = await self._spawn(service)
        state.process = process
        if self._stop.is_set():  # a signal came while it was being started
            process.send_signal(signal.SIGKILL if self._killed_by else signal.SIGTERM)
        assert process.stdout is not None
        assert process.stderr is not None
        if service.ready is None and not service.is_task:
            await self._set_ready(state, True)
        await asyncio.gather(
            self._pass_on(service, state, process.stdout, service.ready),
            self._pass_on(service, state, process.stderr, None),
            process.wait(),
        )
        state.process = None
        assert process.returncode is not None
        return process.returncode

    async def _spawn(self, service: Service) -> asyncio.subprocess.Process:
        # The mask is inherited. The child is made by this thread, the main one, before the first suspension: the kernel
        # ends a child with the thread that made it.
        signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED_IN_CHILDREN)
        try:
            return await asyncio.create_subprocess_exec(
                *service.command(self._addresses),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=child_environment(service.environment),
            )
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED_IN_CHILDREN)

    def _verdict(self, service: Service, state: _State, status: int, started_at: float) -> ServiceFailed | None:
        """Return why it makes no sense to start the child again, or None."""
        if state.was_ready or status <= 0:  # it worked once, or somebody killed it
            state.failing_since = None
            return None
        since = state.failing_since
        restarted_at = max((self._states[name].ready_at for name in service.after), default=0.0)
        if since is None or restarted_at > since:
            since = state.failing_since = started_at
        if status != 2 and time.monotonic() - since < self._startup_seconds:
            return None
        reason = state.last_line.removeprefix("gnomon: ") or f"it ended with status {status}"
        return ServiceFailed(f"{service.name} cannot start: {reason}", 2 if status == 2 else 1)

    async def _pass_on(
        self, service: Service, state: _State, stream: asyncio.StreamReader, ready: re.Pattern[str] | None
    ) -> None:
        """Print a child's lines; a line without end is cut into pieces."""
        prefix = f"{service.name:{self._width}} | ".encode()
        rest = b""
        while chunk := await stream.read(1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LINE_BYTES:
                lines.append(rest)
                rest = b""
            for line in lines:
                await self._take(service, state, prefix, line, ready)
        if rest:
            await self._take(service, state, prefix, rest, ready)

    async def _take(
        self, service: Service, state: _State, prefix: bytes, line: bytes, ready: re.Pattern[str] | None
    ) -> None:
        for start in range(0, len(line) or 1, MAX_LINE_BYTES):
            self._output.line(prefix + line[start : start + MAX_LINE_BYTES])
        text = line[:MAX_LINE_BYTES].decode(errors="replace").strip()
        state.last_line = text or state.last_line
        found = ready.search(text) if ready is not None else None
        if found is not None:
            self._addresses[service.name] = found["address"]
            await self._set_ready(state, True)

    async def _set_ready(self, state: _State, is_ready: bool) -> None:
        state.is_ready = is_ready
        if is_ready:
            state.was_ready = True
            state.ready_at = time.monotonic()
        async with self._changed:
            self._changed.notify_all()
        if not self._is_announced and not self._stop.is_set() and all(s.is_ready for s in self._states.values()):
            self._is_announced = True
            self._on_ready(dict(self._addresses))

    # --- the end ------------------------------------------------------------------------------------------------------

    def _on_hangup(self) -> None:
        if self._has_terminal and not has_terminal():
            self._on_signal(signal.SIGHUP)
        elif not self._stop.is_set():
            names = [service.name for service in self._services if service.reloads]
            self.say(f"SIGHUP: passed on to {', '.join(names) or 'nobody'}")
            for name in names:
                _send(self._states[name].process, signal.SIGHUP)

    def _on_signal(self, number: signal.Signals) -> None:
        if not self._stop.is_set():
            self.say(f"{signal.Signals(number).name}: stopping; once more kills")
            self._begin_stop()
            return
        self._killed_by = signal.Signals(number)
        for state in self._states.values():
            _send(state.process, signal.SIGKILL)

    def _fail(self, failure: ServiceFailed) -> None:
        self._failure = self._failure or failure
        self._begin_stop()

    def _begin_stop(self) -> None:
        self._stop.set()
        self._waker = asyncio.ensure_future(self._wake())

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _end(self, service: Service, keeper: "asyncio.Future[None]") -> None:
        state = self._states[service.name]
        _send(state.process, signal.SIGKILL if self._killed_by else signal.SIGTERM)
        done, _ = await asyncio.wait({keeper}, timeout=service.stop_seconds)
        if not done:
            self.say(f"{service.name} did not stop within {service.stop_seconds:g} s: killed")
            _send(state.process, signal.SIGKILL)
        await keeper

    async def _sleep(self, seconds: float) -> None:
        """Wait, but not longer than until the stop."""
        await asyncio.wait({stopped := asyncio.ensure_future(self._stop.wait())}, timeout=seconds)
        stopped.cancel()


def has_terminal() -> bool:
    """Say whether this process has a controlling terminal that is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def command(name: str, *arguments: str) -> list[str]:
    """Return the command line of a Gnomon command as a child: `… -m gnomon NAME …`."""
    # -P: a folder `proxy` where the user happens to be must not stand in the way of ours.
    return [sys.executable, "-P", "-m", "gnomon", name, *arguments]


def _send(process: asyncio.subprocess.Process | None, number: signal.Signals) -> None:
    if process is not None and process.returncode is None:
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            return  # it ended by itself in this moment


def _ending(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
