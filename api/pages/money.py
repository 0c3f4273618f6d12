"""Money of a month as pages tell it: causes and their colours, accounts summed, the pace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

OWN_KINDS: Final = frozenset({"head_poll", "probe", "chain_check", "subscription", "settle"})


@dataclass(frozen=True, slots=True)
class Why:
    """Why a paid call was made, as pages group causes."""

    name: str
    css_class: str
    """c1 to c6: colours belong to causes, not to ranks."""
    words: str
    """The vocabulary behind it."""


FAILED: Final = Why("Primary failed", "c1", "primary_error, timeout, breaker_open, quota, rate_limited, cordoned")
EMPTY: Final = Why("Empty at the head", "c2", "empty_at_head")
BEYOND: Final = Why("Beyond the head", "c3", "beyond_head")
HEDGE: Final = Why("Hedge", "c4", "hedge")
SHADOW: Final = Why("Paid shadow", "c5", "kind shadow")
OWN: Final = Why("Polls and probes", "c6", "kind head_poll, probe, chain_check, subscription, settle")
ORDER: Final = Why("Order of the policy", "c6", "policy_order")
RETRY: Final = Why("Retry", "c6", "retry")
FIRST: Final = Why("First choice", "c6", "no cause: it is the first in its order")
ALL: Final = (FAILED, EMPTY, BEYOND, HEDGE, SHADOW, OWN, ORDER, RETRY, FIRST)
"""In the order of the drawing and the table."""
_BY_CAUSE: Final[Mapping[str, Why]] = {
    "empty_at_head": EMPTY, "beyond_head": BEYOND, "hedge": HEDGE, "policy_order": ORDER, "retry": RETRY, "": FIRST,
}  # fmt: skip


def why(kind: str, cause: str) -> Why:
    """Return the group of a call: what it was made for first, then why it left the primary."""
    if kind == "shadow":
        return SHADOW
    if kind in OWN_KINDS:
        return OWN
    if kind == "hedge":
        return HEDGE
    return _BY_CAUSE.get(cause, FAILED)


@dataclass(frozen=True, slots=True)
class Month:
    """Accounts with their month, summed; amounts in USD."""

    spent: Decimal
    budget: Decimal | None
    """None: no account has one."""
    forecast: Decimal
    low: Decimal | None
    """Ends of the 80 % band; None: too few days."""
    high: Decimal | None
    begins_at: datetime
    ends_at: datetime
    n_unpriced: int

    @property
    def even_pace(self) -> Decimal | None:
        """USD per hour that the budget lasts with."""
        hours = Decimal(str((self.ends_at - self.begins_at).total_seconds())) / 3600
        return self.budget / hours if self.budget is not None and hours else None


def summed(rows: Sequence[Mapping[str, Any]]) -> Month | None:
    """Return the accounts of the question `budgets` as one; None without any."""
    if not rows:
        return None
    budgets = [row["budget"] for row in rows if row["budget"] is not None]
    has_band = all(row["forecast_low"] is not None for row in rows)
    return Month(
        spent=sum((row["spent"] for row in rows), Decimal(0)),
        budget=sum(budgets, Decimal(0)) if budgets else None,
        forecast=_sum(rows, "forecast"),
        low=_sum(rows, "forecast_low") if has_band else None,
        high=_sum(rows, "forecast_high") if has_band else None,
        begins_at=min(row["cycle_from"] for row in rows),
        ends_at=max(row["cycle_to"] for row in rows),
        n_unpriced=sum(row["n_unpriced"] for row in rows),
    )


def _sum(rows: Sequence[Mapping[str, Any]], name: str) -> Decimal:
    return sum((Decimal(str(row[name] or 0)) for row in rows), Decimal(0))


def gone_at(month: Month, per_hour: Decimal, now: datetime) -> datetime | None:
    """Return when the budget is gone if a pace goes on; None where it lasts the month, or there is none."""
    if month.budget is None or per_hour <= 0 or month.spent >= month.budget:
        return None
    at = now + timedelta(hours=float((month.budget - month.spent) / per_hour))
    return at if at < month.ends_at else None
