"""`gnomon proxy` as a process of its own."""

import asyncio
import json
import resource
import sys
from pathlib import Path

CONFIG = {
    "projects": [{"id": "main", "upstreams": [{"id": "a", "endpoint": "http://127.0.0.1:1", "evm": {"chainId": 1}}]}]
}


async def _health(port: int, n: int) -> int:
    """Return how many of `n` connections open at once get an answer."""
    pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(n)]
    for _, writer in pairs:
        writer.write(b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answers = await asyncio.wait_for(asyncio.gather(*(reader.readuntil(b"\r\n\r\n") for reader, _ in pairs)), 10)
    for _, writer in pairs:
        writer.close()
    return sum(answer.startswith(b"HTTP/1.1 200") for answer in answers)


async def _run(folder: Path) -> tuple[int, int | None, str]:
    file = folder / "gnomon.yaml"
    file.write_text(json.dumps(CONFIG))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gnomon", "proxy", "--config", str(file), "--data", str(folder), "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 512)),
    )
    assert process.stdout is not None
    ready = await asyncio.wait_for(process.stdout.readline(), 30)
    n = await _health(int(ready.rsplit(b":", 1)[1]), 200)
    process.terminate()
    _, messages = await asyncio.wait_for(process.communicate(), 30)
    return n, process.returncode, messages.decode()


def test_it_takes_more_connections_than_a_shell_allows_files_and_says_where_its_limit_is(tmp_path: Path) -> None:
    n, status, messages = asyncio.run(_run(tmp_path))

    assert (n, status) == (200, 0)
    assert "only 512 files may be open, maxConnections is 10000" in messages
