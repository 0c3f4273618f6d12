"""How far behind the head a call reads."""

import pytest
from msgspec import Raw

from gnomon.cost.distance import blocks_behind
from gnomon.rpc.blocks import request_block
from gnomon.rpc.methods import lookup


@pytest.mark.parametrize(
    ("method", "params", "latest", "expected"),
    [
        ("eth_getBlockByNumber", b'["0x64",false]', 200, 100),
        ("eth_getBlockByNumber", b'["0xc8",false]', 200, 0),
        ("eth_getBlockByNumber", b'["0x12c",false]', 200, 0),
        ("eth_getBlockByNumber", b'["latest",false]', 200, 0),
        ("eth_getBlockByNumber", b'["earliest",false]', 200, 200),
        ("eth_getBlockByNumber", b'["0x64",false]', None, None),
        ("eth_call", b'[{"to":"0x1"}]', 200, 0),
        ("eth_getBlockByHash", b'["0x' + b"a" * 64 + b'",false]', 200, None),
        ("eth_getLogs", b'[{"fromBlock":"0x64","toBlock":"0xc8"}]', 200, 100),
        ("eth_getLogs", b'[{"toBlock":"0x64"}]', 200, 100),
        ("eth_getLogs", b'[{"fromBlock":"0x64"}]', 200, 100),
        ("eth_getLogs", b"[{}]", 200, 0),
        ("eth_getLogs", b'[{"blockHash":"0x' + b"b" * 64 + b'"}]', 200, None),
        ("eth_getLogs", b'[{"fromBlock":"earliest"}]', 200, 200),
        ("eth_getLogs", b"nonsense", 200, None),
    ],
)
def test_distance_is_that_of_the_lower_end(
    method: str, params: bytes, latest: int | None, expected: int | None
) -> None:
    """A moving tag is the head itself; what cannot be known is None."""
    entry = lookup(method)
    raw = Raw(params)

    assert expected == blocks_behind(entry, request_block(entry, raw), raw, latest)
