"""
A node for benchmarks: `python -m bench._node PORT BYTES repeat|new|silent`.

Answers head questions with block 1000 and everything else with a result of the given size: the same each time, a new
one for each call, or never. The id is echoed.
"""

import asyncio
import re
import sys

import uvloop

_id = re.compile(rb'"id"\s*:\s*("[^"]*"|\d+)').search
_length = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE).search


class Node(asyncio.Protocol):
    """One connection."""

    def __init__(self, n_bytes: int, kind: str) -> None:
        self._filler = "ab" * max(1, (n_bytes - 40) // 2)
        self._kind = kind
        self._buffer = b""

    n_calls = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = transport.write  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            found = _length(self._buffer, 0, end)
            stop = end + 4 + (int(found[1]) if found else 0)
            if len(self._buffer) < stop:
                return
            body, self._buffer = self._buffer[end + 4 : stop], self._buffer[stop:]
            is_head = b"eth_getBlockByNumber" in body or b"eth_chainId" in body
            if self._kind == "silent" and not is_head:
                continue
            text = self._answer(body)
            self._write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text
            )

    def _answer(self, body: bytes) -> bytes:
        found = _id(body)
        rpc_id = found[1].decode() if found else "null"
        if b"eth_chainId" in body:
            value = '"0x7a69"'
        elif b"eth_getBlockByNumber" in body:
            value = f'{{"number":"0x3e8","hash":"0x{1000:064x}","parentHash":"0x{999:064x}"}}'
        else:
            Node.n_calls += 1
            mark = Node.n_calls if self._kind == "new" else 0
            value = f'{{"n":"0x{mark:016x}","data":"0x{self._filler}"}}'
        return f'{{"jsonrpc":"2.0","id":{rpc_id},"result":{value}}}'.encode()


async def main(port: int, n_bytes: int, kind: str) -> None:
    """Serve for ever."""
    loop = asyncio.get_running_loop()
    await loop.create_server(lambda: Node(n_bytes, kind), "127.0.0.1", port, backlog=1024)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
