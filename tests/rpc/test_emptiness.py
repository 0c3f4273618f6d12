import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.rpc.emptiness import is_emptyish, is_miss
from gnomon.rpc.methods import lookup

EMPTY = [b"null", b'""', b'"0x"', b"[]", b"{}", b"[ ]", b"{\n\t}", b" null", b"null \n", b"  [  ]  ", b""]
VALUES = [
    b'"0x0"', b"0", b"false", b'" "', b'"0X"', b"[null]", b"[[]]", b'{"a":null}', b"[ 1 ]", b"{ \"a\": 1 }", b"]",
    b"[}", b"nulll", b'"null"', b'"0x00"', b"[" + b"1," * 99_999 + b"1]",
]  # fmt: skip


@pytest.mark.parametrize("fragment", EMPTY)
def test_an_empty_result_is_empty_whatever_its_white_space(fragment: bytes) -> None:
    """null, "", "0x", [], {} and no bytes are empty, as bytes and as a view of a larger buffer."""

    assert is_emptyish(fragment)
    assert is_emptyish(memoryview(fragment))
    assert is_emptyish(bytearray(fragment))


@pytest.mark.parametrize("fragment", VALUES)
def test_a_value_is_not_empty(fragment: bytes) -> None:
    """Zero quantities, false, blank strings and anything with an element are values."""

    assert not is_emptyish(fragment)
    assert not is_emptyish(memoryview(fragment))


@given(st.binary(max_size=80))
def test_any_bytes_get_an_answer(fragment: bytes) -> None:
    """What is no JSON is judged by its bytes and never raises."""
    stripped = fragment.strip(b" \t\r\n")
    if stripped[:1] not in (b"[", b"{"):
        assert is_emptyish(fragment) == (
            stripped in (b"", b"null", b'""', b'"0x"') and (not fragment or stripped != b"")
        )


@pytest.mark.parametrize(
    ("method", "fragment", "expected"),
    [
        ("eth_getBlockByNumber", b"null", True),
        ("eth_getTransactionReceipt", b" null ", True),
        ("eth_getTransactionByHash", b"{}", True),
        ("eth_getBlockReceipts", b"null", True),
        ("eth_getBlockReceipts", b" [ ]", False),
        ("trace_block", b"[]", True),
        ("eth_getLogs", b"[]", False),
        ("eth_call", b'"0x"', False),
        ("eth_getBalance", b'"0x0"', False),
        ("eth_getCode", b'"0x"', False),
        ("eth_blockNumber", b'""', True),
        ("eth_getBlockByNumber", b'{"number":"0x1"}', False),
        ("nobody_knowsThis", b"null", False),
    ],
)
def test_the_method_says_whether_empty_means_not_found(method: str, fragment: bytes, expected: bool) -> None:
    """A null block, receipt or transaction is a miss; an empty list of logs or no code is an answer."""

    assert expected == is_miss(lookup(method), fragment)
    assert expected == is_miss(lookup(method), memoryview(fragment))
