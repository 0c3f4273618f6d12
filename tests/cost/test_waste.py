"""Waste: paid and of no use."""

import pytest

from gnomon.cost.charge import FREE, UNPRICED, Charge
from gnomon.cost.waste import is_paid, is_useless
from gnomon.events.contract import Attempt

PAID = Charge(20 * 10**12, 10_500_000)
ZERO = Charge(0, 0)


@pytest.mark.parametrize(
    ("attempt", "charge", "is_beyond_head", "was_answered", "expected"),
    [
        (Attempt(upstream="f", vendor="v"), PAID, False, True, False),
        (Attempt(upstream="f", vendor="v", outcome="empty", is_empty=True), PAID, True, True, True),
        (Attempt(upstream="f", vendor="v", outcome="empty", is_empty=True), PAID, False, True, False),
        (Attempt(upstream="f", vendor="v"), PAID, True, True, False),
        (Attempt(upstream="f", vendor="v", outcome="cancelled", is_cancelled=True), PAID, False, True, True),
        (Attempt(upstream="f", vendor="v", outcome="cancelled", is_cancelled=True), PAID, False, False, False),
        (Attempt(upstream="f", vendor="v", is_duplicate=True), PAID, False, True, True),
        (Attempt(upstream="f", vendor="v", is_duplicate=True), UNPRICED, False, True, True),
        (Attempt(upstream="f", vendor="v", is_duplicate=True), ZERO, False, True, False),
        (Attempt(upstream="f", is_duplicate=True), FREE, False, True, False),
    ],
)
def test_only_paid_calls_of_no_use_are_waste(
    attempt: Attempt, charge: Charge, is_beyond_head: bool, was_answered: bool, expected: bool
) -> None:
    """Null beyond the head, the loser of a hedge, a second answer; never a free call, never a client that left."""
    found = is_useless(attempt, is_beyond_head=is_beyond_head, was_answered=was_answered)

    assert expected is (found and is_paid(attempt.vendor, charge))
