"""
The nodes of the demonstration alone, at ports that are known beforehand: they stand in for upstreams of one's own.

Each node listens where the system put it; a forwarder of bytes in front of it has the port that was asked for.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

from gnomon.demo.errors import DemoError
from gnomon.demo.nodes import CHAIN_ID
from gnomon.demo.world import BLOCK_SECONDS, World

FIRST_PORT: Final = 8545
"""Of the primary; shadow and fallback have the next two."""
_CHUNK_BYTES: Final = 1 << 16


async def stand_in(world: World, first_port: int, result: Callable[[str], None], host: str = "127.0.0.1") -> None:
    """
    Serve a world until cancelled, a block every two seconds.

    Args:
        world: its nodes run.
        first_port: of the primary.
        result: is told the addresses once they listen.
        host: where they listen.

    Raises:
        DemoError: a port is in use, or a node failed.
    """
    places = (("primary", world.primary), ("shadow", world.shadow), ("fallback", world.fallback))
    async with AsyncExitStack() as stack:
        lines = [f"chain id {CHAIN_ID}; a block every {BLOCK_SECONDS} s; Ctrl-C ends all"]
        for port, (role, node) in enumerate(places, start=first_port):
            await stack.enter_async_context(forwarding(port, node.url, host))
            lines.append(f"  {role:<9} http://{host}:{port}   {node.version}")
        result("\n".join(lines))
        while True:
            await asyncio.sleep(BLOCK_SECONDS)
            await world.advance()


@asynccontextmanager
async def forwarding(port: int, url: str, host: str = "127.0.0.1") -> AsyncIterator[None]:
    """
    Pass every connection to a port on to a URL's, which is a loopback one, until the block ends.

    Raises:
        DemoError: the port is in use.
    """
    target = urlsplit(url).port
    open_connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_connections.add(task)
        try:
            await _join(reader, writer, target)
        finally:
            open_connections.discard(task)

    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise DemoError(f"port {port} cannot be used ({why}): choose others with --node-port") from error
    server = await asyncio.start_server(serve, sock=listener)
    try:
        yield
    finally:
        server.close()
        for task in open_connections:
            task.cancel()
        await asyncio.gather(*open_connections, return_exceptions=True)


async def _join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int | None) -> None:
    """Pass bytes both ways until either side ends."""
    try:
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(_pass_on(reader, far_writer))
                    both.create_task(_pass_on(far_reader, writer))
            except* OSError:
                pass  # one side is gone: so is the connection
            finally:
                far_writer.close()
    finally:
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(_CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
