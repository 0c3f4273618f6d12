"""The newest block: the ceiling of the future, the majority's tip, and `latest` written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.config.model import BlockBound
from gnomon.rpc.methods import lookup
from proxy.core.tips import ceiling, effective, majority, written_out


@pytest.mark.parametrize(
    ("heads", "highest"), [([], None), ([5], 5), ([5, 9, 7], 9), ([5, None, 9], None), ([None], None), ([0], 0)]
)
def test_the_ceiling_is_the_highest_head_while_all_are_known(heads: list[int | None], highest: int | None) -> None:
    """An upstream whose head is unknown may have any block."""
    assert ceiling(heads) == highest


@pytest.mark.parametrize(
    ("heads", "tip"),
    [
        ([], None), ([7], 7), ([7, 9], 7), ([7, 8, 9], 8), ([9, 9, 1], 9), ([9, 8, 7, 6], 7),
        ([9, None], None), ([9, 8, None], 8), ([9, None, None], None),
    ],
)  # fmt: skip
def test_the_tip_is_what_a_strict_majority_has(heads: list[int | None], tip: int | None) -> None:
    """More than half, those with an unknown head counted as having none."""
    assert majority(heads) == tip


@given(st.lists(st.none() | st.integers(0, 50), max_size=9))
def test_more_than_half_have_the_tip_and_no_newer_block(heads: list[int | None]) -> None:
    """By counting."""

    def has(number: int) -> int:
        return sum(head is not None and head >= number for head in heads)

    tip = majority(heads)
    if tip is None:
        assert 2 * has(0) <= len(heads)
    else:
        assert 2 * has(tip) > len(heads) >= 2 * has(tip + 1)


@pytest.mark.parametrize(
    ("latest", "cap", "newest"),
    [
        (100, None, 100),
        (None, BlockBound(exact_block=5), None),
        (100, BlockBound(exact_block=50), 50),
        (100, BlockBound(exact_block=500), 100),
        (100, BlockBound(latest_minus=10), 90),
        (3, BlockBound(latest_minus=10), 0),
    ],
)
def test_a_declared_upper_bound_caps_the_head(latest: int | None, cap: BlockBound | None, newest: int | None) -> None:
    """An upstream never serves what it says it has not."""
    assert effective(latest, cap) == newest


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("eth_getBlockByNumber", b'["latest", true]', b'["0x10",true]'),
        ("eth_getBlockByNumber", b'["0x5",true]', None),
        ("eth_getBlockByNumber", b'["finalized",true]', None),
        ("eth_getBlockByNumber", b"[]", None),
        ("eth_getBlockByNumber", b'{"a":1}', None),
        ("eth_call", b'[{"to":"latest","n":1.0},"latest"]', b'[{"to":"latest","n":1.0},"0x10"]'),
        ("eth_call", b'[{"to":"0x1"}]', None),
        (
            "eth_getLogs",
            b'[{"fromBlock":"0x1","toBlock":"latest","topics":[ "latest" ]}]',
            b'[{"fromBlock":"0x1","toBlock":"0x10","topics":[ "latest" ]}]',
        ),
        ("eth_blockNumber", b'["latest"]', None),
    ],
)
def test_latest_is_written_out_where_it_is_a_block(method: str, params: bytes, expected: bytes | None) -> None:
    """At the method's own positions only; every other value keeps its bytes."""
    assert written_out(lookup(method).block_paths, params, 16) == expected
