"""
Which paid calls were of no use.

Three kinds are useless: a null for a block beyond the head, the cancelled loser of a hedge, and a second answer to a
request that was answered already. Wasted is what is useless and paid for (an unpriced vendor counts as paid), so a new
price may change it.
"""

from gnomon.cost.charge import Charge
from gnomon.events.contract import Attempt


def is_paid(vendor: str, charge: Charge) -> bool:
    """Return whether a call costs money; a vendor without a price does, we only do not know how much."""
    return bool(vendor) and (charge.usd is None or charge.usd > 0)


def is_useless(attempt: Attempt, *, is_beyond_head: bool, was_answered: bool) -> bool:
    """
    Return whether an attempt was of no use, whatever it costs.

    Args:
        attempt: the call.
        is_beyond_head: the block asked for was above the network's head.
        was_answered: the client got an answer, so that a cancelled call is the loser of a race and not a client gone.
    """
    if attempt.is_duplicate:
        return True
    if attempt.is_empty and is_beyond_head:
        return True
    return was_answered and (attempt.is_cancelled or attempt.outcome == "cancelled")
