"""The nodes alone: known ports in front of them, the same world behind each."""

import asyncio
import json
import re
import signal
import subprocess
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gnomon.cli import main
from gnomon.demo.errors import DemoError
from gnomon.demo.standing_in import forwarding
from tests.demo.test_e2e import assert_nothing_is_left, start
from tests.ports import free_port, free_ports

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@asynccontextmanager
async def shouting() -> AsyncIterator[str]:
    """A server that gives back each line in capital letters, and ends with its client."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def test_bytes_pass_both_ways_until_one_side_ends() -> None:
    """More than a buffer of them; the end is passed on too."""

    async def run() -> bytes:
        port, text = free_port(), b"x" * 300_000 + b"\n"
        async with shouting() as url, forwarding(port, url):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
            writer.write(text)
            line = await reader.readline()
            writer.write_eof()
            rest = await reader.read()
            writer.close()
        return line + rest

    assert asyncio.run(run()) == b"X" * 300_000 + b"\n"


def test_a_node_that_is_away_ends_the_connection() -> None:
    """And not the forwarder."""

    async def run() -> list[bytes]:
        port, answers = free_port(), []
        async with forwarding(port, f"http://127.0.0.1:{free_port()}"):
            for _ in range(2):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                answers.append(await reader.read())
                writer.close()
        return answers

    assert asyncio.run(run()) == [b"", b""]


def test_a_port_in_use_is_named() -> None:
    """With the way out."""

    async def run() -> None:
        async with shouting() as url:
            port = int(url.rpartition(":")[2])
            async with forwarding(port, url):
                pass

    with pytest.raises(DemoError, match=r"port \d+ cannot be used .*--node-port"):
        asyncio.run(run())


@pytest.mark.parametrize("text", ["0", "65534", "-1", "x", ""])
def test_what_is_no_port_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two more must follow it."""
    with pytest.raises(SystemExit):
        main(["demo", "--nodes", f"--node-port={text}"])

    assert "is no port that two more can follow" in capsys.readouterr().err


def ask(url: str, method: str, *params: object) -> object:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with OPENER.open(request, timeout=10) as answer:
        return json.load(answer)["result"]


@pytest.mark.e2e
def test_the_nodes_answer_at_the_named_ports(tmp_path: Path) -> None:
    """One world at three addresses, with blocks that come; Ctrl-C leaves nothing."""
    port = free_ports(3)
    process: subprocess.Popen[str] = start(tmp_path, "--simulated", "--nodes", "--node-port", str(port))
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4)]
    urls = re.findall(r"http://\S+", "".join(lines))

    assert urls == [f"http://127.0.0.1:{port + n}" for n in range(3)]
    assert [ask(url, "eth_chainId") for url in urls] == ["0x7a69"] * 3
    before = int(str(ask(urls[1], "eth_blockNumber")), 16)
    while int(str(ask(urls[1], "eth_blockNumber")), 16) == before:
        pass
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert_nothing_is_left(tmp_path)
