"""The rollup beside the calls that went into it: what is to be added so that they agree."""

from datetime import date

from ingest.repricing.aligning import calls, corrections, floors, rollup

HOUR = 1_796_000_400
GROUP = [str(HOUR), "main", "evm:1", "acme", "a", "f1", "fallback", "client", "timeout", "eth_call", "l1", "log", "0"]


def row(*sums: str, key: tuple[str, str, str] = ("l1", "log", "0")) -> list[str]:
    return [*GROUP[:-3], *key, *sums]


def test_what_agrees_needs_nothing() -> None:
    """NULL and 0 are one sum: the counters say which it is."""
    of_rollup = [
        row("2", "0", "2", "2", "\\N", "\\N", "7"),
        row("1", "0", "0", "0", "1", "2", "9", key=("l2", "log", "1")),
    ]
    of_calls = [
        row("2", "0", "2", "2", "0", "0"),
        row("1", "0", "0", "0", "1.000000000000", "2", key=("l2", "log", "1")),
    ]

    assert corrections(of_rollup, of_calls) == ([], 0)


def test_a_difference_becomes_a_row_that_adds_it() -> None:
    """No call more; money, units and waste as they should be; counters wrap round as the engine adds them."""
    (found,), n_left = corrections([row("3", "2", "0", "1", "5", "7.5", "42")], [row("3", "1", "3", "0", "6", "\\N")])

    assert n_left == 0
    assert found.key == ("l1", "log", "0")
    assert found.row == (
        HOUR * 1000, *GROUP[1:-3], 0, 2**64 - 1, 3, 2**64 - 1, 10**12, -7_500_000_000_000, 42,
    )  # fmt: skip


def test_a_group_whose_calls_are_not_kept_stays() -> None:
    """Fewer calls than went in, or none: the sums that are there are the only ones."""
    of_rollup = [
        row("3", "0", "0", "0", "5", "7", "42"),
        row("1", "0", "0", "0", "5", "7", "1", key=("l2", "log", "0")),
    ]

    assert corrections(of_rollup, [row("2", "0", "0", "0", "1", "1")]) == ([], 2)


def test_a_day_is_compared_up_to_the_greatest_offset_of_each_log() -> None:
    """What is stored behind it is in the rollup later; texts are literals."""
    of_rollup = [row("1", "0", "0", "0", "1", "1", "5"), row("1", "0", "0", "0", "1", "1", "9"),
                 row("1", "0", "0", "0", "1", "1", "0", key=("l'2", "log", "3"))]  # fmt: skip
    found = floors(of_rollup)
    statement = calls(date(2026, 11, 30), found)

    assert found == {("l1", "log", "0"): 9, ("l'2", "log", "3"): 0}
    assert "['l1 log 0', 'l\\'2 log 3']" in statement
    assert "CAST([9, 0], 'Array(UInt64)')" in statement
    assert "at < toDateTime64('2026-12-01 00:00:00', 3, 'UTC')" in statement
    assert "hour >= toDateTime64('2026-11-30 00:00:00', 3, 'UTC')" in rollup(date(2026, 11, 30))
