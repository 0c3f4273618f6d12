"""
The bill of real requests through `gnomon up`, against what the upstreams themselves have counted.

    python -m bench bill [--requests N] [--seed N]

Two own nodes that fail often, three paid fallbacks (Alchemy, Infura, Chainstack) and a metered shadow of a user's book,
all of them servers of this process that charge what arrives by the tables of `bench.billing`; hedges, retries,
time-outs, dropped connections, 429, 5xx, nulls, reverts, client batches, head polls, chain checks. Then SQL is asked.

XXX: connections are dropped at their first call only. At a later one the proxy cannot tell an upstream that took the
call and went from one that had closed the idle connection: it asks again, and both are one call in the bill.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import aiohttp

from bench.billing import EVERYBODY, LATEST, METHODS, OWN_BOOK, Call, Meter, Upstream
from bench.proxy import free_port

ENDS = ("result", "null", "revert", "timeout", "dropped", "429", "500")
GOOD = (84, 6, 4, 1, 1, 1, 3)
BAD = (40, 25, 5, 4, 6, 2, 18)
TIMEOUT_SECONDS, SLOW_SECONDS = 1.5, 4.0
OWN_METHODS = frozenset({"eth_chainId", "eth_blockNumber", "eth_syncing", "net_version"})


class Node:
    """One upstream, and its meter."""

    def __init__(self, upstream: Upstream, seed: int) -> None:
        self.upstream = upstream
        self.meter = Meter(upstream.vendor)
        self._random = random.Random(f"{seed} {upstream.id}")
        self.port = free_port()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_first = True
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line
                )
                question = json.loads(await reader.readexactly(length))
                end, answer = self._answer(question, is_first)
                is_first = False
                call = Call(question["method"], _behind(question), "timeout" if end == "dropped" else end)
                if end not in ("429", "500"):
                    self.meter.count(call)
                if end == "dropped":
                    return
                if end == "timeout":
                    await asyncio.sleep(SLOW_SECONDS)
                status = {"429": 429, "500": 500}.get(end, 200)
                body = json.dumps(answer).encode()
                head = b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                writer.write(head % (status, len(body)) + body)
                if end in ("429", "500"):
                    # Who goes before the refusal has reached him cannot know of it: for both it is a call cut off.
                    await asyncio.sleep(0.05)
                    self.meter.count(replace(call, end="cancelled") if reader.at_eof() else call)
                else:
                    await asyncio.sleep(self._random.choice((0, 0, 0.002, 0.05)))
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            return
        finally:
            writer.close()

    def _answer(self, question: Any, is_first: bool) -> tuple[str, object]:
        base = {"jsonrpc": "2.0", "id": question["id"]}
        method = question["method"]
        block = {"number": hex(LATEST), "hash": "0x" + "11" * 32, "parentHash": "0x" + "22" * 32}
        if method in OWN_METHODS or (
            method == "eth_getBlockByNumber" and question["params"][0] in ("latest", "finalized")
        ):
            known = {"eth_chainId": "0x1", "eth_blockNumber": hex(LATEST), "eth_syncing": False, "net_version": "1"}
            return "result", {**base, "result": known.get(method, block)}
        end = self._random.choices(ENDS, BAD if self.upstream.is_bad else GOOD)[0]
        if end == "dropped" and not is_first:
            end = "result"
        if end == "revert":
            return end, {**base, "error": {"code": 3, "message": "execution reverted", "data": "0x08c379a0"}}
        if end in ("429", "500"):
            return end, {**base, "error": {"code": -32005 if end == "429" else -32603, "message": "no"}}
        if end == "null":
            return "null", {**base, "result": [] if method == "eth_getLogs" else None}
        return end, {**base, "result": {"transactionHash": "0x1"}}


def _behind(question: Any) -> int | None:
    """Return how far behind the head a call asks."""
    params = question["params"]
    if question["method"] == "eth_getLogs":
        block = params[0]["fromBlock"]
    elif question["method"] == "eth_getBlockByNumber":
        block = params[0]
    elif question["method"] in ("eth_call", "eth_getBalance"):
        block = params[1]
    else:
        return None
    return LATEST - int(block, 16) if block.startswith("0x") else 0


def question(choose: random.Random, number: int) -> dict[str, object]:
    """Return one request of a client."""
    method = choose.choice(METHODS)
    block = hex(LATEST - choose.choice((1, 126, 127, 128, 5_000)))
    address = f"0x{number:040x}"
    params: list[object] = [address, block]
    if method == "eth_getBlockByNumber":
        params = [block, False]
    elif method == "eth_getLogs":
        params = [{"fromBlock": block, "toBlock": hex(LATEST), "address": address}]
    elif method == "eth_getTransactionReceipt":
        params = [f"0x{number:064x}"]
    elif method == "eth_call":
        params = [{"to": address}, block]
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def configuration(nodes: list[Node], folder: Path) -> dict[str, object]:
    failsafe = [{"matchMethod": "*", "timeout": {"duration": f"{int(TIMEOUT_SECONDS * 1000)}ms"}}]
    upstreams = []
    for node in nodes:
        it = node.upstream
        entry: dict[str, object] = {"id": it.id, "endpoint": f"http://127.0.0.1:{node.port}", "evm": {"chainId": 1},
                                    "failsafe": failsafe}  # fmt: skip
        if it.vendor:
            entry |= {"vendor": it.vendor, "account": it.vendor}
        if it.tier == "fallback":
            entry["tags"] = ["tier:fallback"]
        if it.tier == "shadow":
            entry["shadow"] = {"enabled": True}
        upstreams.append(entry)
    network = {"architecture": "evm", "evm": {"chainId": 1}, "failsafe": [
        {"matchMethod": "*", "retry": {"maxAttempts": 2, "delay": "0s"}, "hedge": {"delay": "20ms", "maxCount": 1}},
    ]}  # fmt: skip
    (folder / "acme.yaml").write_text(OWN_BOOK)
    return {
        "projects": [{"id": "main", "networks": [network], "upstreams": upstreams}],
        "gnomon": {
            "proxy": {"port": free_port()},
            "api": {"port": 0},
            "clickhouse": {"url": f"http://127.0.0.1:{free_port()}"},
            "pricing": {"books": [str(folder / "acme.yaml")]},
        },
    }


async def client(url: str, n: int, seed: int) -> int:
    """Send requests, some in batches; return how many got an HTTP answer."""
    choose, numbers, answered = random.Random(seed), iter(range(1, n + 1)), 0

    async def one(session: aiohttp.ClientSession) -> None:
        nonlocal answered
        for number in numbers:
            size = choose.choice((1, 1, 1, 1, 3))
            batch = [
                question(choose, number),
                *(question(choose, m) for _, m in zip(range(size - 1), numbers, strict=False)),
            ]
            async with session.post(url, json=batch if size > 1 else batch[0]) as response:
                await response.read()
                answered += len(batch)

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as session:
        await asyncio.gather(*(one(session) for _ in range(24)))
    return answered


def sql(url: str, query: str) -> list[dict[str, Any]]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}/?{urllib.parse.urlencode({'query': query + ' FORMAT JSON'})}", timeout=60) as answer:
        rows: list[dict[str, Any]] = json.load(answer)["data"]
    return rows


def start(folder: Path) -> "subprocess.Popen[bytes]":
    line = [sys.executable, "-m", "gnomon", "up", "--config", str(folder / "gnomon.yaml"), "--data", str(folder / "d")]
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(line, stdout=output, stderr=output)


async def measure(n: int, seed: int, folder: Path) -> int:
    nodes = [Node(upstream, seed) for upstream in EVERYBODY]
    for node in nodes:
        await node.start()
    config = configuration(nodes, folder)
    own: Any = config["gnomon"]
    (folder / "gnomon.yaml").write_text(json.dumps(config))
    proxy, clickhouse = f"http://127.0.0.1:{own['proxy']['port']}/main/evm/1", own["clickhouse"]["url"]
    up = await asyncio.to_thread(start, folder)
    try:
        deadline = time.monotonic() + 120
        while b"gnomon up: ready" not in (folder / "output").read_bytes():
            if up.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"bench: gnomon up: {(folder / 'output').read_text()[-1000:]}")
            await asyncio.sleep(0.2)
        started = time.perf_counter()
        answered = await client(proxy, n, seed)
        seconds = time.perf_counter() - started
        # Polls go on, so meters and rows are read until they agree on how much came.
        open_ = {node.upstream.id for node in nodes}
        wrong: list[str] = []
        for _ in range(15):
            await asyncio.sleep(SLOW_SECONDS / 2)
            equal, wrong, rows = await asyncio.to_thread(compare, nodes, clickhouse)
            open_ -= equal
            if not open_:
                break
        wrong = [line for line in wrong if line.partition(":")[0] in open_]
        print(f"{answered} requests in {seconds:.1f} s, seed {seed}")
        for row in rows:
            print(LINE.format(**row))
        print("\n".join(wrong) or "each bill is what the upstream's own meter says, to the unit and the last decimal")
        return 1 if wrong else 0
    finally:
        up.terminate()
        up.wait(60)


LINE = (
    "  {upstream:14} {n:>7} calls + {n_free:>5} that never left, {units} units, {usd} USD, {n_wasted} wasted, "
    "{n_cancelled} cancelled"
)
BILLS = """
SELECT upstream, countIf(request_bytes > 0) AS n, countIf(request_bytes = 0) AS n_free, toString(sum(a.units)) AS units,
    toString(sum(a.usd)) AS usd, countIf(is_wasted) AS n_wasted, countIf(outcome = 'cancelled') AS n_cancelled
FROM gnomon.attempts AS a GROUP BY upstream ORDER BY upstream
"""


def compare(nodes: list[Node], clickhouse: str) -> tuple[set[str], list[str], list[dict[str, Any]]]:
    """Return whose bill is what the meter said just before or after it was read, whose is not, and the bills."""
    before = {node.upstream.id: (node.meter.n, node.meter.units, node.meter.usd) for node in nodes}
    rows = sql(clickhouse, BILLS)
    after = {node.upstream.id: (node.meter.n, node.meter.units, node.meter.usd) for node in nodes}
    equal, wrong = set(), []
    for row in rows:
        name = row["upstream"]
        bill = (int(row["n"]), Fraction(row["units"]), round(Fraction(row["usd"]) * 10**12))
        if bill in (before[name], after[name]):
            equal.add(name)
        else:
            wrong.append(f"{name}: meter {before[name]}, bill {bill}")
    return equal, wrong, rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(measure(args.requests, args.seed, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
