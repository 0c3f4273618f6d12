"""Heads: what is known, by whom, and what does not count."""

import pytest

from proxy.core.heads import HeadBook, HeadChange, ReorgSeen


def book(*upstreams: str, expiry: float = 60.0) -> HeadBook:
    """Return a book; a name that begins with `s` is a shadow's."""
    return HeadBook({name: name.startswith("s") for name in upstreams}, dict.fromkeys(upstreams, expiry))


def hashed(number: int, fork: str = "") -> dict[str, str]:
    return {"block_hash": f"{number}{fork}", "parent_hash": f"{number - 1}{fork}"}


def test_nothing_is_known_before_anybody_spoke() -> None:
    """Unknown is None, never 0, and nothing is beyond it."""
    heads = book("a")

    assert (heads.latest, heads.safe, heads.finalized) == (None, None, None)
    assert not heads.is_beyond(10**9)


def test_a_head_of_zero_is_a_head() -> None:
    """Block 1 is beyond block 0."""
    heads = book("a", "b")
    heads.observe("a", "latest", 0, 1.0)

    assert heads.latest == 0
    assert (heads.is_beyond(0), heads.is_beyond(1)) == (False, True)


def test_the_axes_are_apart() -> None:
    """The latest head says nothing of the finalized one."""
    heads = book("a")
    heads.observe("a", "latest", 100, 1.0)
    heads.observe("a", "safe", 95, 1.0)

    assert (heads.latest, heads.safe, heads.finalized) == (100, 95, None)
    assert heads.is_beyond(101)
    assert not heads.is_beyond(101, finalized=True)


def test_the_first_observation_and_each_change_are_told() -> None:
    """The same again is no news; a fall is."""
    heads = book("a")
    told = [heads.observe("a", "latest", n, 1.0) for n in (100, 100, 101, 99)]

    assert [[c.number for c in changes] for changes in told] == [[100], [], [101], [99]]
    assert told[0] == [HeadChange("a", "latest", 100, "", "", "poll", False)]
    assert heads.latest == 99


def test_a_response_only_moves_forward() -> None:
    """An old block in an answer is no head; one above is, and names its source."""
    heads = book("a")
    heads.observe("a", "latest", 100, 1.0)

    assert heads.observe("a", "latest", 90, 2.0, source="response") == []
    assert heads.observe("a", "latest", 101, 2.0, source="response") == [
        HeadChange("a", "latest", 101, "", "", "response", False)
    ]


def test_an_old_block_in_a_response_does_not_keep_a_head_alive() -> None:
    """Only the head itself, seen again, does."""
    heads = book("a", "b")
    for name in "ab":
        heads.observe(name, "latest", 100, 0.0)
    heads.observe("a", "latest", 90, 50.0, source="response")
    heads.observe("b", "latest", 100, 50.0, source="response")

    assert heads.expire(61.0) == [("a", "latest")]


@pytest.mark.parametrize(("at", "expected"), [(60.0, 100), (60.001, None)])
def test_an_observation_expires(at: float, expected: int | None) -> None:
    """The limit itself still holds; afterwards the head is unknown."""
    heads = book("a")
    heads.observe("a", "latest", 100, 0.0)
    heads.expire(at)

    assert heads.latest == expected


def test_the_highest_head_that_is_left_is_the_networks() -> None:
    """When the most-ahead expires, the next counts; its return is told."""
    heads = book("a", "b")
    heads.observe("a", "latest", 105, 0.0)
    heads.observe("b", "latest", 100, 30.0)
    heads.expire(61.0)

    assert heads.latest == 100
    assert [change.number for change in heads.observe("a", "latest", 105, 62.0)] == [105]
    assert heads.latest == 105


@pytest.mark.parametrize(("number", "expected", "is_outlier"), [(228, 228, False), (229, 100, True)])
def test_an_outlier_does_not_set_the_networks_head(number: int, expected: int, is_outlier: bool) -> None:
    """128 blocks above the second is the most."""
    heads = book("a", "b")
    heads.observe("a", "latest", 100, 1.0)
    (change,) = heads.observe("b", "latest", number, 1.0)

    assert isinstance(change, HeadChange)
    assert (heads.latest, change.is_outlier) == (expected, is_outlier)


def test_an_outlier_above_block_zero_is_told() -> None:
    """A network at block 0 is a network."""
    heads = book("a", "b")
    heads.observe("a", "latest", 0, 1.0)
    (change,) = heads.observe("b", "latest", 5000, 1.0)

    assert isinstance(change, HeadChange)
    assert change.is_outlier
    assert heads.latest == 0


def test_two_that_agree_are_no_outliers() -> None:
    """A laggard does not hold two others back."""
    heads = book("a", "b", "c")
    for name, number in (("a", 100), ("b", 5000), ("c", 5001)):
        heads.observe(name, "latest", number, 1.0)

    assert heads.latest == 5001


def test_a_fast_chain_has_a_longer_reach() -> None:
    """At four blocks a second, 60 seconds are 240 blocks."""
    heads = book("a", "b")
    for i in range(0, 80, 8):
        heads.observe("a", "latest", 1000 + i, i / 4)
    heads.observe("b", "latest", 1072 + 200, 20.0)

    assert heads.latest == 1272


def test_shadows_have_no_part() -> None:
    """Their heads are kept, and set nothing."""
    heads = book("a", "s0")
    (change,) = heads.observe("s0", "latest", 999, 1.0)
    assert isinstance(change, HeadChange)

    assert (heads.latest, change.is_outlier, heads.positions["s0"].latest) == (None, False, 999)


def reorgs(heads: HeadBook, number: int, fork: str) -> list[ReorgSeen]:
    return [c for c in heads.observe("a", "latest", number, 1.0, **hashed(number, fork)) if isinstance(c, ReorgSeen)]


def test_a_chain_that_grows_is_no_reorg() -> None:
    """Nor is a gap, nor an upstream that falls back to a block it had."""
    heads = book("a")
    for number in (100, 101, 105, 101, 102):
        assert reorgs(heads, number, "") == []


def test_a_block_of_the_same_height_that_was_replaced() -> None:
    """Depth 1, both hashes, and the head is told although its number is the same."""
    heads = book("a")
    heads.observe("a", "latest", 100, 1.0, block_hash="x", parent_hash="p")
    changes = heads.observe("a", "latest", 100, 1.0, block_hash="y", parent_hash="p")

    assert changes == [ReorgSeen("a", 100, 1, "x", "y"), HeadChange("a", "latest", 100, "y", "p", "poll", False)]


def test_a_parent_that_was_replaced() -> None:
    """The next block names another parent."""
    heads = book("a")
    reorgs(heads, 100, "")

    assert reorgs(heads, 101, "'") == [ReorgSeen("a", 100, 1, "100", "100'")]
    assert reorgs(heads, 102, "'") == []


def test_a_deeper_reorg_counts_from_the_head() -> None:
    """Head 103 falls to another 101: blocks 100 to 103 are gone."""
    heads = book("a")
    for number in range(99, 104):
        reorgs(heads, number, "")

    assert reorgs(heads, 101, "'") == [ReorgSeen("a", 100, 4, "100", "100'")]
    assert reorgs(heads, 102, "'") == []


def test_after_a_restart_at_a_low_block_reorgs_are_still_seen() -> None:
    """The history forgets the oldest observation, not the lowest block."""
    heads = book("a")
    for number in range(5000, 5300):
        reorgs(heads, number, "")
    reorgs(heads, 3, "")

    assert reorgs(heads, 4, "'") == [ReorgSeen("a", 3, 1, "3", "3'")]
    assert len(heads.positions["a"].hashes) <= 256


def test_the_version_grows_with_each_change() -> None:
    """What was encoded from the heads can be kept until then."""
    heads = book("a")
    before = heads.version
    heads.observe("a", "latest", 1, 1.0)
    changed = heads.version
    heads.observe("a", "latest", 1, 2.0)

    assert before < changed == heads.version
    heads.expire(100.0)
    assert heads.version > changed


def test_who_answers_for_another_chain_sets_no_head() -> None:
    """What it said before is left out too, each later head says so, and it counts again once it is right."""
    heads = book("a", "b")
    heads.observe("a", "latest", 100, 1.0)
    heads.observe("b", "latest", 120, 1.0)
    heads.leave_out("b", True)
    assert heads.latest == 100

    (change,) = heads.observe("b", "latest", 121, 2.0)
    assert isinstance(change, HeadChange)
    assert (change.is_outlier, heads.latest) == (True, 100)
    assert heads.positions["b"].latest == 121, "the ceiling of future blocks counts it"
    heads.leave_out("b", False)
    assert heads.latest == 121


def test_a_shadow_cannot_be_let_in() -> None:
    """Its chain id is right, and it stays a shadow."""
    heads = book("a", "s0")
    heads.observe("s0", "latest", 120, 1.0)
    heads.leave_out("s0", False)

    assert heads.latest is None


def test_lag_counts_from_the_first_block_that_is_lacking() -> None:
    """In blocks against the best, in seconds since anybody had the next block; the best lags by nothing."""
    heads = book("a", "b", "s0")
    heads.observe("a", "latest", 100, 0.0)
    heads.observe("b", "latest", 100, 0.0)
    heads.observe("s0", "latest", 98, 0.0)
    for number in range(101, 106):
        heads.observe("a", "latest", number, (number - 100) * 12.0)

    assert (heads.lag_blocks("b"), heads.lag_seconds("b", 62.0)) == (5, 50.0)
    assert (heads.lag_blocks("a"), heads.lag_seconds("a", 62.0)) == (0, 0.0)
    assert (heads.lag_blocks("s0"), heads.lag_seconds("s0", 62.0)) == (7, 62.0)
    heads.observe("b", "latest", 104, 63.0)
    assert (heads.lag_blocks("b"), heads.lag_seconds("b", 64.0)) == (1, 4.0)


def test_lag_is_unknown_while_a_head_is() -> None:
    """An upstream that said nothing is neither behind nor level."""
    heads = book("a", "b")
    heads.observe("a", "latest", 100, 0.0)

    assert (heads.lag_blocks("b"), heads.lag_seconds("b", 9.0)) == (None, None)


def test_a_head_that_fell_is_reached_anew() -> None:
    """After a restart of the chain the seconds count from the new growth."""
    heads = book("a", "b")
    heads.observe("a", "latest", 500, 0.0)
    heads.observe("a", "latest", 10, 10.0)
    heads.observe("b", "latest", 10, 10.0)
    heads.observe("a", "latest", 11, 20.0)

    assert heads.lag_seconds("b", 25.0) == 5.0


def test_lag_stays_right_beyond_what_is_remembered() -> None:
    """Longer growth than the history gives the age of the oldest entry, not nothing."""
    heads = book("a", "b", "c")
    heads.observe("b", "latest", 1, 0.0)
    for number in range(2, 600):
        for name in "ac":
            heads.observe(name, "latest", number, float(number))

    assert (heads.lag_blocks("b"), heads.lag_seconds("b", 600.0)) == (598, 256.0)
