"""
What each upstream answers to question `n`, and so which verdict its pair must get.

A question is one block number, asked once: `block_number` of every row says whose it is. All numbers lie far below the
finalized head, so once a proxy has seen the heads no verdict depends on when it is given.
"""

import json
from typing import Any, Final, Literal

CHAIN: Final = 31337
HEAD: Final = 1_000_000_000
FINALIZED: Final = HEAD - 64
PRIMARIES: Final = ("p1", "p2")
FALLBACK: Final = "f1"
SHADOW: Final = "s1"
SHADOW_TIMEOUT_SECONDS: Final = 2.0
LATE_SECONDS: Final = 1.2

Kind = Literal["same", "masked", "value", "empty", "error", "silent", "late", "failed"]

_KINDS: Final[dict[int, Kind]] = {
    3: "masked", 7: "value", 9: "error", 13: "masked", 17: "late", 19: "failed", 21: "empty", 23: "masked",
    27: "value", 29: "silent", 33: "masked", 37: "value", 39: "failed",
}  # fmt: skip
_ROUND: Final = 40
VERDICTS: Final[dict[Kind, tuple[str, str]]] = {
    "same": ("identical", "none"),
    "masked": ("identical_masked", "none"),
    "value": ("mismatch", "value"),
    "empty": ("mismatch", "empty_vs_data"),
    "error": ("error", "error_vs_result"),
    "silent": ("missing", "none"),
    "late": ("identical", "none"),
    "failed": ("identical", "none"),
}
"""Kind → outcome and class."""
BEFORE_HEADS: Final[dict[Kind, tuple[str, str]]] = {"empty": ("mismatch", "stale_head")}
"""What a proxy that has just started may say: it has only seen answers, and thinks the newest one is the head."""
MASKED: Final = "timestamp"
"""The member of a block that `ignoreFields` leaves out."""


def kind(n: int) -> Kind:
    """Return what is particular about question `n`: a third differ somehow, in shares that are known."""
    return _KINDS.get(n % _ROUND, "same")


def question(n: int) -> dict[str, Any]:
    """Return the request; its id is the question."""
    return {"jsonrpc": "2.0", "id": n, "method": "eth_getBlockByNumber", "params": [hex(n), False]}


def served(n: int) -> dict[str, str]:
    """Return the block that a client must get."""
    return {
        "number": hex(n),
        "hash": f"0x{n:064x}",
        "parentHash": f"0x{n - 1:064x}",
        "gasUsed": hex(21_000 + n % 7),
        MASKED: hex(1_700_000_000 + n),
    }


def mirrored(n: int) -> dict[str, Any] | None:
    """
    Return the members `result` or `error` of the shadow's answer; None: it never answers.

    The fallback and the primaries give `served`.
    """
    block = served(n)
    match kind(n):
        case "masked":
            block[MASKED] = hex(1_800_000_000 + n)
        case "value":
            block["gasUsed"] = "0x1"
        case "empty":
            return {"result": None}
        case "error":
            return {"error": {"code": -32603, "message": "internal error"}}
        case "silent":
            return None
    return {"result": block}


def configuration(endpoints: dict[str, str]) -> dict[str, Any]:
    """Return `projects` of the configuration, the upstreams at these addresses."""

    def upstream(name: str, **more: Any) -> dict[str, Any]:
        common = {"id": name, "endpoint": endpoints[name], "evm": {"chainId": CHAIN, "statePollerInterval": "1s"}}
        return {**common, **more}

    def timeout(seconds: float) -> list[dict[str, Any]]:
        return [{"matchMethod": "*", "timeout": {"duration": f"{int(seconds * 1000)}ms"}}]

    network = {"architecture": "evm", "evm": {"chainId": CHAIN}, "failsafe": timeout(5)}
    shadow = {"enabled": True, "ignoreFields": {"eth_getBlockByNumber": [MASKED]}}
    upstreams = [
        upstream("p1"),
        upstream("p2", breaker={"threshold": 3, "openFor": "1s"}),
        upstream(FALLBACK, tags=["tier:fallback"], vendor="alchemy"),
        upstream(SHADOW, shadow=shadow, failsafe=timeout(SHADOW_TIMEOUT_SECONDS)),
    ]
    return {"id": "main", "networks": [network], "upstreams": upstreams}


def answer(rpc_id: object, members: dict[str, Any]) -> bytes:
    """Return the text of an answer."""
    return json.dumps({"jsonrpc": "2.0", "id": rpc_id, **members}).encode()
