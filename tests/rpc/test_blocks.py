import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.rpc.blocks import MAX_BLOCK_NUMBER, NO_BLOCK, BlockRef, parse_number, request_block, response_block
from gnomon.rpc.methods import METHODS, lookup

HASH = "0x" + "ab" * 32


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("eth_getBlockByNumber", ["0x10", False], BlockRef(16)),
        ("eth_getBlockByNumber", ["0x0", False], BlockRef(0)),
        ("eth_getBlockByNumber", ["latest", False], BlockRef(tag="latest")),
        ("eth_getBlockByNumber", [16, False], BlockRef(16)),
        ("eth_getBlockByNumber", ["16", False], BlockRef(16)),
        ("eth_getBlockByNumber", [], NO_BLOCK),
        ("eth_getBlockByNumber", [None], NO_BLOCK),
        ("eth_getBlockByNumber", [True], NO_BLOCK),
        ("eth_getBlockByNumber", ["0x"], NO_BLOCK),
        ("eth_getBlockByNumber", ["0x1_0"], NO_BLOCK),
        ("eth_getBlockByNumber", ["0x" + "f" * 17], NO_BLOCK),
        ("eth_getBlockByHash", [HASH.upper().replace("X", "x"), False], BlockRef(hash=HASH)),
        ("eth_getBlockReceipts", [{"blockHash": HASH}], BlockRef(hash=HASH)),
        ("eth_getBlockReceipts", [{"blockNumber": "0x2"}], BlockRef(2)),
        ("eth_getBalance", ["0x00", "pending"], BlockRef(tag="pending")),
        ("eth_getBalance", ["0x00"], BlockRef(is_left_out=True)),
        ("eth_call", [{"to": "0x00"}, {"blockHash": HASH, "requireCanonical": True}], BlockRef(hash=HASH)),
        ("eth_call", [{"to": "0x00"}, {"blockNumber": "0x5"}, {}], BlockRef(5)),
        ("eth_getStorageAt", ["0x00", "0x0", "0x7"], BlockRef(7)),
        ("trace_call", [{}, ["trace"], "0x9"], BlockRef(9)),
        ("trace_call", [{}, "0x9"], BlockRef(9)),
        ("eth_feeHistory", ["0x4", "0x83", []], BlockRef(0x83)),
        ("eth_getLogs", [{"fromBlock": "0x1", "toBlock": "0x3"}], BlockRef(3, is_range=True)),
        ("eth_getLogs", [{"fromBlock": "0x1", "toBlock": "latest"}], BlockRef(1, "latest", is_range=True)),
        ("eth_getLogs", [{"fromBlock": "earliest", "toBlock": "latest"}], BlockRef(None, "latest", is_range=True)),
        ("eth_getLogs", [{"fromBlock": "0x1"}], BlockRef(1, "latest", is_range=True)),
        ("eth_getLogs", [{"blockHash": HASH}], BlockRef(hash=HASH)),
        ("eth_getLogs", [{}], BlockRef(is_left_out=True)),
        ("eth_chainId", [], NO_BLOCK),
        ("nobody_knowsThis", ["0x1"], NO_BLOCK),
    ],
)
def test_the_block_of_a_request_is_found_where_the_table_says(
    method: str, params: list[object], expected: BlockRef
) -> None:
    """Numbers, tags, hashes, EIP-1898 objects and ranges; the same from raw text and from decoded parameters."""
    raw = json.dumps(params).encode()
    entry = lookup(method)

    assert expected == request_block(entry, params)
    assert expected == request_block(entry, raw)
    assert expected == request_block(entry, memoryview(raw))
    assert expected == request_block(entry, msgspec.Raw(raw))


@pytest.mark.parametrize("raw", [b"", b"[", b"{}", b'"0x1"', b"\xff\xfe", b"[" * 5_000, b"nul", b'["\xff"]'])
def test_malformed_params_name_no_block(raw: bytes) -> None:
    """Anything that is no list of parameters gives the empty reference and no error."""

    assert request_block(lookup("eth_getBlockByNumber"), raw) == NO_BLOCK


def test_a_left_out_block_means_the_newest() -> None:
    """It moves with the head although no tag is named."""
    ref = request_block(lookup("eth_call"), b'[{"to":"0x00"}]')

    assert (ref.tag, ref.is_moving) == ("", True)


@given(st.sampled_from(sorted(METHODS)), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["fromBlock", "toBlock", "blockHash", "blockNumber"]), inner, max_size=3),
    max_leaves=8,
))  # fmt: skip
def test_any_params_get_a_reference(name: str, params: object) -> None:
    """Whatever the client sends, raw and decoded, the number is in the range of blocks."""
    raw = json.dumps(params).encode()
    for ref in (request_block(lookup(name), params), request_block(lookup(name), raw)):
        assert ref.number is None or 0 <= ref.number <= MAX_BLOCK_NUMBER


@pytest.mark.parametrize(
    ("method", "fragment", "expected"),
    [
        ("eth_blockNumber", b'"0x10"', 16),
        ("eth_getBlockByNumber", b'{"transactions":[{"number":"0x2"}],"number":"0x10"}', 16),
        ("eth_getBlockByHash", b'{"number":null}', None),
        ("eth_getTransactionReceipt", b'{"logs":[{"blockNumber":"0x1"}],"blockNumber":"0x10"}', 16),
        ("eth_getTransactionByHash", b'{"blockNumber":null}', None),
        ("eth_getTransactionByHash", b"null", None),
        ("eth_getBlockReceipts", b'[{"blockNumber":"0x10"},{"blockNumber":"0x11"}]', 16),
        ("eth_getBlockReceipts", b"[]", None),
        ("eth_getBlockReceipts", b'[{"blockNumber":"0x10"}', None),
        ("eth_getLogs", b'[{"blockNumber":"0x10"}]', None),
        ("eth_getBlockByHash", b'{"number":"\xff"}', None),
    ],
)
def test_the_block_of_an_answer_is_found_where_the_table_says(
    method: str, fragment: bytes, expected: int | None
) -> None:
    """Block, transaction and receipt look-ups name it; broken text names none."""

    assert expected == response_block(lookup(method), fragment)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("0x0", 0), ("0X1f", 31), (str(MAX_BLOCK_NUMBER), MAX_BLOCK_NUMBER), (MAX_BLOCK_NUMBER + 1, None), (-1, None),
     ("-1", None), ("+1", None), (" 1", None), ("٣", None), (1.0, None), (True, None), ("0xg", None), ("", None)],
)  # fmt: skip
def test_a_number_is_hex_or_decimal_digits_and_nothing_else(value: object, expected: int | None) -> None:
    """Signs, spaces, underscores, other scripts, floats and booleans are no block numbers."""

    assert expected == parse_number(value)
