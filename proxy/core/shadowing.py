"""
Who gets a copy of a request: one decision for each shadow, in a fixed order, each recorded.

    short_circuited · write · method_excluded · out_of_range · sampled_out · budget · shed · size · mirrored

The first that applies is the decision, so that coverage has a denominator. Sampling is by a stable key: a replay of
the same requests takes the same sample.
"""

from collections.abc import Sequence
from typing import Final

from xxhash import xxh3_64_intdigest

from gnomon.config.model import BlockBound
from gnomon.config.patterns import matches
from gnomon.rpc.methods import Method

MIRRORED, SHORT_CIRCUITED, WRITE, METHOD_EXCLUDED, OUT_OF_RANGE, SAMPLED_OUT, BUDGET, SHED, SIZE = (
    "mirrored", "short_circuited", "write", "method_excluded", "out_of_range", "sampled_out", "budget", "shed", "size",
)  # fmt: skip

_SCALE: Final = 1 << 64


def is_allowed(method: str, allow: Sequence[str], ignore: Sequence[str]) -> bool:
    """Apply `ignoreMethods` first, then `allowMethods` wins; an allow-list alone ignores the rest."""
    if any(matches(pattern, method) for pattern in allow):
        return True
    if allow and not ignore:
        return False
    return not any(matches(pattern, method) for pattern in ignore)


def static_decision(method: Method, allow: Sequence[str], ignore: Sequence[str]) -> str:
    """Return what is decided by the method alone: `write`, `method_excluded`, or "" when more must be asked."""
    if method.is_write or method.is_stateful:
        return WRITE
    return "" if is_allowed(method.name, allow, ignore) else METHOD_EXCLUDED


def is_in_range(number: int | None, lower: BlockBound | None, upper: BlockBound | None, latest: int | None) -> bool:
    """Check a block number against declared availability; what is not known is let through."""
    if number is None:
        return True
    low = _bound(lower, latest)
    high = _bound(upper, latest)
    if low is not None and high is not None and low > high:
        return True
    return (low is None or number >= low) and (high is None or number <= high)


def _bound(bound: BlockBound | None, latest: int | None) -> int | None:
    if bound is None:
        return None
    if bound.exact_block is not None:
        return bound.exact_block
    if bound.latest_minus is not None:
        return None if latest is None else latest - bound.latest_minus
    return bound.earliest_plus


def is_sampled(sample_rate: float, shadow: str, method: str, params: bytes, rpc_id: bytes) -> bool:
    """Say whether a stable sample of the given rate holds this request: 1.0 always, 0 never."""
    if sample_rate >= 1.0:
        return True
    if sample_rate <= 0.0:
        return False
    key = b"%b\0%b\0%b\0%b" % (shadow.encode(), method.encode(), params, rpc_id)
    return xxh3_64_intdigest(key) < sample_rate * _SCALE
