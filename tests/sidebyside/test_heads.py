"""The common final height."""

import pytest

from gnomon.sidebyside.errors import SideBySideError
from gnomon.sidebyside.heads import Heads, common


def heads(latest: int, finalized: int | None, chain_id: int = 1) -> Heads:
    return Heads(chain_id, latest, finalized, "x")


@pytest.mark.parametrize(
    ("primary", "shadow", "final"),
    [
        (heads(1000, 950), heads(1001, 940), 940),
        (heads(1000, 950), heads(940, 960), 940),
        (heads(1000, None), heads(1000, None), 936),
        (heads(1000, 950), heads(1000, None), 936),
        (heads(1000, 900), heads(1000, None), 900),
        (heads(100, None), heads(100, None), 50),
        (heads(128, None), heads(129, None), 64),
        (heads(1, None), heads(1, None), 0),
        (heads(0, None), heads(0, None), 0),
        (heads(5, 0), heads(5, 5), 0),
    ],
)
def test_common_final_height(primary: Heads, shadow: Heads, final: int) -> None:
    """The lower finalized block; a margin below the newest where one serves none; never above either head."""
    assert final == common(primary, shadow, margin=64).final
    assert final == common(shadow, primary, margin=64).final


def test_the_margin_is_said() -> None:
    """When finality is assumed, the explanation says so."""
    assert common(heads(9, 8), heads(9, 8)).explanation == "finalized at both"
    assert "64 blocks below the newest" in common(heads(1000, None), heads(1000, 900)).explanation


def test_different_chains_are_refused() -> None:
    """Two chains cannot be compared; both ids are named."""
    with pytest.raises(SideBySideError, match=r"1 \(primary\) and 5 \(shadow\)"):
        common(heads(9, 8, 1), heads(9, 8, 5))
