"""Starts real nodes as children on free loopback ports, all with the same accounts and the same first block's time."""

import asyncio
import json
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import aiohttp

from gnomon.demo.errors import NodeFailed
from gnomon.demo.installation import Installation
from gnomon.process import child_environment

CHAIN_ID: Final = 31337
MNEMONIC: Final = "test test test test test test test test test test test junk"
GAS_LIMIT: Final = 30_000_000
READY_SECONDS: Final = 30.0
_TRIES: Final = 3
"""Another program may take the free port before the node does."""


class Rpc:
    """Calls one endpoint from the event loop; an error answer is raised."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self.url = url

    async def call(self, method: str, *params: object, timeout_seconds: float = 10.0) -> object:
        """
        Return the result.

        Raises:
            NodeFailed: an error answer, or none.
        """
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        try:
            async with self._session.post(self.url, json=message, timeout=timeout) as response:
                answer = await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError) as exc:
            raise NodeFailed(f"{self.url} does not answer {method}: {exc or type(exc).__name__}") from exc
        if not isinstance(answer, dict) or "result" not in answer:
            raise NodeFailed(f"{self.url} refuses {method}: {str(answer)[:300]}")
        return answer["result"]


def free_port() -> int:
    """Return a loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def anvil_command(installation: Installation, port: int, genesis_time: int) -> list[str]:
    """Return anvil with mining by hand; `finalized` follows two blocks behind `latest`."""
    return [
        str(installation.anvil),
        *("--port", str(port), "--chain-id", str(CHAIN_ID), "--mnemonic", MNEMONIC, "--timestamp", str(genesis_time)),
        *("--gas-limit", str(GAS_LIMIT), "--hardfork", "prague", "--slots-in-an-epoch", "1", "--order", "fifo"),
        *("--no-mining", "--disable-default-create2-deployer", "--quiet"),
    ]


def shadow_command(installation: Installation, port: int, genesis_time: int, folder: Path) -> list[str]:
    """Return hardhat or ganache, set up to be like anvil where it can be; writes its configuration into `folder`."""
    script = str(installation.shadow_script)
    if installation.shadow == "ganache":
        start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(genesis_time))
        return [
            *(str(installation.node), script, "--server.port", str(port), "--server.host", "127.0.0.1"),
            *("--chain.chainId", str(CHAIN_ID), "--chain.networkId", str(CHAIN_ID), "--chain.time", start),
            *(
                "--wallet.mnemonic",
                MNEMONIC,
                "--wallet.defaultBalance",
                "10000",
                "--miner.blockGasLimit",
                str(GAS_LIMIT),
            ),
            *("--miner.instamine", "eager", "--miner.blockTime", "1000000", "--logging.quiet"),
        ]
    network = {
        "chainId": CHAIN_ID,
        "hardfork": "prague",
        "mining": {"auto": False, "interval": 0, "mempool": {"order": "fifo"}},
        "initialDate": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(genesis_time)),
        "initialBaseFeePerGas": 1_000_000_000,
        "blockGasLimit": GAS_LIMIT,
        "accounts": {"mnemonic": MNEMONIC, "count": 10, "accountsBalance": str(10_000 * 10**18)},
    }
    config = folder / "hardhat.config.cjs"
    config.write_text(f"module.exports = {json.dumps({'solidity': '0.8.28', 'networks': {'hardhat': network}})};\n")
    (folder / "package.json").write_text('{"private": true}')
    modules = folder / "node_modules"  # hardhat wants to be installed beside its configuration
    with suppress(FileExistsError):
        modules.symlink_to((installation.folder / "node_modules").resolve())
    return [
        str(installation.node),
        script,
        "--config",
        str(config),
        "node",
        "--hostname",
        "127.0.0.1",
        "--port",
        str(port),
    ]


class Node:
    """A running node; `stop` ends it, and so does our own end."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, rpc: Rpc, version: str) -> None:
        self.name = name
        self.rpc = rpc
        self.version = version
        """`web3_clientVersion`."""
        self._process = process

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    async def stop(self) -> None:
        """End the process at once: it has nothing to save."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


async def start_node(
    session: aiohttp.ClientSession,
    name: str,
    installation: Installation,
    *,
    kind: str,
    genesis_time: int,
    folder: Path,
) -> Node:
    """
    Return a node of `kind` ("anvil", or the installation's shadow) that answers.

    Raises:
        NodeFailed: it ended or did not answer in time; its log file is named.
    """
    log = _log_file(folder, name)
    for is_last in (False,) * (_TRIES - 1) + (True,):
        port = free_port()
        if kind == "anvil":
            command = anvil_command(installation, port, genesis_time)
        else:
            command = shadow_command(installation, port, genesis_time, folder)
        process = await _spawn(command, folder, log)
        try:
            version = await _ready(Rpc(session, f"http://127.0.0.1:{port}"), process)
        except BaseException as exc:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            if not isinstance(exc, NodeFailed):
                raise
            if is_last:
                raise NodeFailed(f"{name} did not start ({exc}); see {log}") from exc
            continue
        return Node(name, process, Rpc(session, f"http://127.0.0.1:{port}"), version)
    raise AssertionError("the last try returns or raises")


def _log_file(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.log"


async def _spawn(command: list[str], folder: Path, log: Path) -> asyncio.subprocess.Process:
    """Start a program that dies with us; what it says goes to `log`."""
    with log.open("ab") as stderr:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gnomon.demo.tether", *command),
            cwd=folder,
            env=child_environment({"HARDHAT_DISABLE_TELEMETRY_PROMPT": "true"}),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )


async def _ready(rpc: Rpc, process: asyncio.subprocess.Process) -> str:
    """Return the node's version once it answers with the right chain id."""
    end = time.monotonic() + READY_SECONDS
    while process.returncode is None and time.monotonic() < end:
        try:
            chain_id = await rpc.call("eth_chainId", timeout_seconds=2.0)
        except NodeFailed:
            await asyncio.sleep(0.05)
            continue
        if chain_id != hex(CHAIN_ID):
            raise NodeFailed(f"another program answers at {rpc.url}: chain id {chain_id}")
        return str(await rpc.call("web3_clientVersion"))
    raise NodeFailed(
        f"ended with status {process.returncode}"
        if process.returncode is not None
        else f"no answer in {READY_SECONDS:.0f} s"
    )
