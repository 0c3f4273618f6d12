"""The configuration that the demonstration writes: a primary, a shadow with masks, a priced fallback."""

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from gnomon.demo.nodes import CHAIN_ID, free_port
from gnomon.demo.world import World

PREFERRED_PORTS: Final = {"proxy": 4000, "api": 8080, "clickhouse": 8123}
PROJECT: Final = "main"

BY_CONSTRUCTION: Final[dict[str, list[str]]] = {
    "eth_getBlockByNumber": [
        "hash",
        "parentHash",
        "stateRoot",
        "parentBeaconBlockRoot",
        "transactions.*.blockHash",
    ],
    "eth_getBlockReceipts": ["*.blockHash", "*.logs.*.blockHash"],
    "eth_getTransactionByHash": ["blockHash"],
    "eth_getTransactionReceipt": ["blockHash", "logs.*.blockHash"],
    "eth_getLogs": ["*.blockHash"],
}
"""Masks for two implementations that each begin with a genesis block of their own: no hash of a block can agree."""

_HEADER: Final = """\
# Written by `gnomon demo`. The nodes that it names end with the demonstration; the data stays and can be asked:
#   gnomon clickhouse --config THIS_FILE --data ITS_FOLDER
"""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the services of the demonstration listen, on loopback."""

    proxy: int
    api: int
    clickhouse: int

    @property
    def proxy_url(self) -> str:
        """Where the client's calls go."""
        return f"http://127.0.0.1:{self.proxy}/{PROJECT}/evm/{CHAIN_ID}"

    @property
    def clickhouse_url(self) -> str:
        """Where SQL is answered."""
        return f"http://127.0.0.1:{self.clickhouse}"


def choose_ports() -> Ports:
    """Return the usual ports where they are free, else others."""
    return Ports(**{name: port if _is_free(port) else free_port() for name, port in PREFERRED_PORTS.items()})


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def configuration(world: World, ports: Ports) -> dict[str, Any]:
    """Return the configuration in eRPC's shape."""
    evm = {"chainId": CHAIN_ID, "statePollerInterval": "500ms"}
    shadow: dict[str, Any] = {"enabled": True}
    if world.kind == "real":
        shadow["ignoreFields"] = {method: list(paths) for method, paths in BY_CONSTRUCTION.items()}
    return {
        "projects": [
            {
                "id": PROJECT,
                "networks": [{"architecture": "evm", "evm": {"chainId": CHAIN_ID}}],
                "upstreams": [
                    {"id": world.primary.name, "endpoint": world.primary.url, "evm": dict(evm)},
                    {
                        "id": world.fallback.name,
                        "endpoint": world.fallback.url,
                        "vendorName": "alchemy",
                        "tags": ["tier:fallback"],
                        "evm": dict(evm),
                    },
                    {"id": world.shadow.name, "endpoint": world.shadow.url, "shadow": shadow, "evm": dict(evm)},
                ],
            }
        ],
        "gnomon": {
            "proxy": {"host": "127.0.0.1", "port": ports.proxy},
            "api": {"host": "127.0.0.1", "port": ports.api},
            "clickhouse": {"url": ports.clickhouse_url},
        },
    }


def write(world: World, ports: Ports, folder: Path) -> Path:
    """Write the configuration into `folder`; return the file."""
    file = folder / "gnomon.yaml"
    file.write_text(_HEADER + yaml.safe_dump(configuration(world, ports), sort_keys=False))
    return file
