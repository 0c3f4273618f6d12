"""The port speaks TLS where it is told to, and nothing else. Run by the loop that serves, whose TLS is its own."""

import asyncio
import functools
import json
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
import uvloop

from gnomon.config.errors import TlsError
from gnomon.config.load import loads
from gnomon.events.log import Writer
from proxy.service import Service
from tests.proxy.scripted import PATH, PATIENCE_SECONDS, Proxy, configuration, running, upstreams

FILES = Path(__file__).parents[1] / "tls"
BODY = b'{"jsonrpc":"2.0","id":7,"method":"eth_call","params":[]}'
REQUEST = b"POST %b HTTP/1.1\r\nHost: localhost\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"


def on_uvloop(test: Callable[[Path], Coroutine[None, None, None]]) -> Callable[[Path], None]:
    @functools.wraps(test)
    def run(tmp_path: Path) -> None:
        uvloop.run(test(tmp_path))

    return run


def encrypted(config: str, cert: Path = FILES / "cert.pem", key: Path = FILES / "key.pem") -> str:
    whole = json.loads(config)
    whole["gnomon"]["proxy"]["tls"] = {"cert": str(cert), "key": str(key)}
    return json.dumps(whole)


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(FILES / "cert.pem"))


async def ask(proxy: Proxy, context: ssl.SSLContext, n: int = 1) -> bytes:
    """Send so many requests on one connection, the last with the wish to close; return all answers."""
    reader, writer = await asyncio.open_connection("localhost", proxy.service.port, ssl=context)
    for left in reversed(range(n)):
        last = b"" if left else b"Connection: close\r\n"
        writer.write(REQUEST % (PATH.encode(), last, len(BODY), BODY))
    raw = await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
    writer.close()
    return raw


@on_uvloop
async def test_requests_are_answered_over_tls(tmp_path: Path) -> None:
    """On a kept connection too, and with the certificate that the file names."""
    async with (
        upstreams(None) as nodes,
        running(encrypted(configuration(nodes)), tmp_path) as proxy,
    ):
        raw = await ask(proxy, trusting(), 3)

        assert raw.count(b'{"jsonrpc":"2.0","id":7,"result":"0x2a"}') == 3
        assert len(nodes[0].calls) == 3


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
@on_uvloop
async def test_old_versions_and_plain_text_get_no_answer(tmp_path: Path) -> None:
    """The connection ends before a request is read; the port serves others meanwhile."""
    async with (
        upstreams(None) as nodes,
        running(encrypted(configuration(nodes)), tmp_path) as proxy,
    ):
        old = trusting()
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await ask(proxy, old)
        plain = await proxy.send(REQUEST % (PATH.encode(), b"", len(BODY), BODY))

        assert b"HTTP/1.1" not in plain
        assert nodes[0].calls == []
        assert (await ask(proxy, trusting())).startswith(b"HTTP/1.1 200")


@on_uvloop
async def test_files_that_went_bad_since_the_file_was_read_stop_the_start(tmp_path: Path) -> None:
    """With an error that names the file."""
    key = tmp_path / "key.pem"
    key.write_bytes((FILES / "key.pem").read_bytes())
    async with upstreams(None) as nodes:
        settings = loads(encrypted(configuration(nodes), key=key), environment={})
        key.unlink()
        writer = Writer(str(tmp_path / "log"), segment_bytes=8 << 20, max_bytes=64 << 20)
        service = Service(settings, writer)
        with pytest.raises(TlsError, match=r"cannot read .*key\.pem"):
            await service.start()
        writer.close()
        service.wheel.stop()
