"""Who gets a copy."""

import pytest

from gnomon.config.model import BlockBound
from gnomon.config.patterns import matches
from gnomon.rpc.methods import lookup
from proxy.core.shadowing import METHOD_EXCLUDED, WRITE, is_allowed, is_in_range, is_sampled, static_decision


@pytest.mark.parametrize(
    ("pattern", "method", "expected"),
    [
        ("*", "", True),
        ("*", "eth_call", True),
        ("eth_call", "eth_call", True),
        ("eth_call", "eth_callMany", False),
        ("eth_*", "eth_", True),
        ("eth_*", "debug_eth_call", False),
        ("*_call", "eth_call", True),
        ("*_call", "eth_callMany", False),
        ("eth_get*By*", "eth_getBlockByHash", True),
        ("eth_get*By*", "eth_getLogs", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("ab*b*bc", "abbc", False),
        ("a**b", "ab", True),
        ("", "", True),
        ("", "a", False),
        ("eth.call", "eth_call", False),
    ],
)
def test_a_star_stands_for_any_text(pattern: str, method: str, expected: bool) -> None:
    """The rest is literal, and no character is used twice."""
    assert matches(pattern, method) is expected


@pytest.mark.parametrize(
    ("allow", "ignore", "expected"),
    [
        ((), (), True),
        ((), ("eth_call",), False),
        ((), ("debug_*",), True),
        (("eth_call",), (), True),
        (("debug_*",), (), False),
        (("eth_call",), ("*",), True),
        (("debug_*",), ("*",), False),
        (("debug_*",), ("trace_*",), True),
    ],
)
def test_ignored_first_and_allowed_wins(allow: tuple[str, ...], ignore: tuple[str, ...], expected: bool) -> None:
    """An allow-list alone ignores the rest."""
    assert is_allowed("eth_call", allow, ignore) is expected


@pytest.mark.parametrize(
    ("method", "allow", "expected"),
    [
        ("eth_sendRawTransaction", (), WRITE),
        ("eth_sendRawTransaction", ("debug_*",), WRITE),
        ("eth_newFilter", (), WRITE),
        ("acme_sendTransaction", (), WRITE),
        ("eth_call", ("debug_*",), METHOD_EXCLUDED),
        ("eth_call", (), ""),
        ("acme_unheardOf", (), ""),
    ],
)
def test_a_write_is_never_mirrored(method: str, allow: tuple[str, ...], expected: str) -> None:
    """Nor what one node keeps; that comes before any list of methods."""
    assert static_decision(lookup(method), allow, ()) == expected


LOW, HIGH, LAST = BlockBound(exact_block=10), BlockBound(exact_block=20), BlockBound(latest_minus=5)


@pytest.mark.parametrize(
    ("number", "lower", "upper", "latest", "expected"),
    [
        (9, LOW, HIGH, None, False),
        (10, LOW, HIGH, None, True),
        (20, LOW, HIGH, None, True),
        (21, LOW, HIGH, None, False),
        (None, LOW, HIGH, None, True),
        (0, None, None, None, True),
        (94, LAST, None, 100, False),
        (95, LAST, None, 100, True),
        (1, LAST, None, None, True),
        (96, None, LAST, 100, False),
        (3, BlockBound(earliest_plus=4), None, None, False),
        (4, BlockBound(earliest_plus=4), None, None, True),
        (0, BlockBound(exact_block=0), BlockBound(exact_block=0), None, True),
    ],
)
def test_declared_ranges_hold_with_both_ends(
    number: int | None, lower: BlockBound | None, upper: BlockBound | None, latest: int | None, expected: bool
) -> None:
    """What is not known is let through."""
    assert is_in_range(number, lower, upper, latest) is expected


def sample(rate: float, shadow: str = "s0") -> set[int]:
    return {i for i in range(2000) if is_sampled(rate, shadow, "eth_call", b'["0x1"]', b"%d" % i)}


def test_none_and_all() -> None:
    """A rate of 0 samples nothing, 1 everything."""
    assert sample(0.0) == set()
    assert len(sample(1.0)) == 2000


def test_a_sample_is_stable_and_of_its_size() -> None:
    """The same requests again are the same sample; another shadow takes its own; a larger rate keeps the smaller's."""
    quarter = sample(0.25)

    assert 400 < len(quarter) < 600
    assert sample(0.25) == quarter
    assert sample(0.25, "s1") != quarter
    assert quarter < sample(0.5)
