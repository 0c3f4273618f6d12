"""Metrics as text, whoever counts them."""

import sys
import threading

import pytest

from gnomon.exposition import Definition, Values, render, sample
from tests.exposition import labels_by_name

LISTED = (
    Definition("gnomon_calls_total", "counter", ("upstream", "reason"), "Calls."),
    Definition("gnomon_open", "gauge", (), "Open ones."),
)


def test_a_metric_without_a_value_is_announced() -> None:
    """Whoever reads knows that it may come."""
    assert Values(LISTED).render().splitlines() == [
        "# HELP gnomon_calls_total Calls.",
        "# TYPE gnomon_calls_total counter",
        "# HELP gnomon_open Open ones.",
        "# TYPE gnomon_open gauge",
    ]


def test_what_several_threads_count_is_all_there() -> None:
    """None reads a value that another is about to replace."""
    values = Values(LISTED)
    n_threads, n_each = 3, 100_000
    together = threading.Barrier(n_threads)

    def count() -> None:
        together.wait(60)
        for _ in range(n_each):
            values.add("gnomon_open")

    threads = [threading.Thread(target=count) for _ in range(n_threads)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)

    assert values.get("gnomon_open") == n_threads * n_each


def test_values_are_counted_by_their_labels() -> None:
    """Each combination is a line, in the order in which they came."""
    values = Values(LISTED)
    values.add("gnomon_calls_total", ("p1", "timeout"))
    values.add("gnomon_calls_total", ("p2", "timeout"), 2)
    values.add("gnomon_calls_total", ("p1", "timeout"))
    values.set("gnomon_open", value=3)
    values.add("gnomon_open", amount=-1)

    assert [line for line in values.render().splitlines() if not line.startswith("#")] == [
        'gnomon_calls_total{upstream="p1",reason="timeout"} 2',
        'gnomon_calls_total{upstream="p2",reason="timeout"} 2',
        "gnomon_open 2",
    ]
    assert values.get("gnomon_calls_total", ("p3", "timeout")) == 0


def test_what_is_not_in_the_list_is_a_bug() -> None:
    """A name, or one label too few."""
    with pytest.raises(KeyError):
        Values(LISTED).set("gnomon_closed")
    with pytest.raises(AssertionError):
        Values(LISTED).add("gnomon_calls_total", ("p1",))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (-1.0, "-1"),
        (0.1, "0.1"),
        (1 / 3, "0.3333333333333333"),
        (2.0**52, "4503599627370496"),
        (1e300, "1e+300"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_a_number_is_read_back_as_it_was(value: float, expected: str) -> None:
    """Whole ones without a point, others in full."""
    assert sample("gnomon_open", {}, value) == f"gnomon_open {expected}"


def test_any_text_may_be_a_label() -> None:
    """Quotes, backslashes and line ends are escaped."""
    text = render(LISTED, {"gnomon_calls_total": [({"upstream": 'a"b\\c\nd', "reason": ""}, 1)]})

    assert 'upstream="a\\"b\\\\c\\nd",reason=""' in text
    assert labels_by_name(text) == {"gnomon_calls_total": {("reason", "upstream")}}
