"""
The way from the workers to ClickHouse: some requests arrive late, also when who sent them is dead by then.

What a client has sent is passed on whatever becomes of the client, as a network or a full socket would. `is_open` set
to False: connections are refused and those that are there break, in the midst of whatever they carry.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

CHUNK = 1 << 16
MAX_SECONDS = 1.5


@dataclass(slots=True)
class LateWay:
    """A port of loopback that leads to another one."""

    target_port: int
    chance: random.Random
    late_share: float = 0.03
    is_open: bool = True
    port: int = 0
    n_late: int = 0
    n_after_death: int = 0
    """Late requests whose sender was gone when they arrived."""
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Lead there as long as the block lasts; `port` is known within."""
        server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            self.cut()

    def cut(self) -> None:
        """Let nothing through from now on, in neither direction."""
        self.is_open = False
        for writer in list(self._writers):
            writer.transport.abort()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            writer.transport.abort()
            return
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there_writer}
        try:
            await asyncio.gather(
                self._pass_on(reader, there_writer, is_late=True), self._pass_on(there_reader, writer, is_late=False)
            )
        finally:
            for one in (writer, there_writer):
                self._writers.discard(one)
                one.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_late: bool) -> None:
        """Carry bytes in one direction until its end, which is passed on too."""
        try:
            while data := await reader.read(CHUNK):
                if is_late and self.chance.random() < self.late_share:
                    self.n_late += 1
                    await asyncio.sleep(self.chance.uniform(0.05, MAX_SECONDS))
                    self.n_after_death += reader.at_eof() or reader.exception() is not None
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        except (OSError, RuntimeError):  # uvloop's word for a connection that is closed already
            return
