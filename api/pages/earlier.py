"""
What a number was in the range before, and how it changed: beside or below it, in grey.

A change of a share is only told where the two samples bear it: the interval of the difference leaves zero out.
"""

import math
from dataclasses import dataclass
from decimal import Decimal

from markupsafe import Markup

from api.pages import figures
from api.pages.figures import Figure, Rate

SAME = "same"
UNCLEAR = "no clear change"
TIMES_FROM = 10
"""From so many times on, a change is told as `12 ×`: a percentage would be hard to read."""
_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class Was:
    """One number in the range before."""

    figure: Figure
    change: str = ""
    """`+12 %`, `+0.4 points`, `same`, `no clear change`; empty where the two cannot be compared."""
    title: str = ""
    """On hover: the interval of the change."""

    def __str__(self) -> str:
        return " · ".join(part for part in (self.figure.text, self.change) if part)

    def __html__(self) -> Markup:
        if not self.figure:
            return Markup("")
        said = Markup('<small class="was"><span class="vh">, before: </span>{}').format(self.figure)
        if self.change:
            title = Markup(' title="{}"').format(self.title) if self.title else ""
            said += Markup('<span class="sep"> · </span><span class="chg"{}>{}</span>').format(title, self.change)
        return said + Markup("</small>")

    def __bool__(self) -> bool:
        return bool(self.figure)


NOT_ASKED = Was(figures.UNKNOWN)
"""No comparison is wanted, or nothing is known of the range before: shown as nothing."""


def amount(now: float | Decimal | None, before: float | Decimal | None, figure: Figure) -> Was:
    """
    Return a count, a sum or a duration as it was, with its change in parts of it.

    Args:
        now: None or zero or more; None = unknown, so that no change is told.
        before: the same of the range before; None = unknown.
        figure: how `before` is shown.
    """
    if before is None:
        return NOT_ASKED
    return Was(figure, "" if now is None else changed(float(now), float(before)))


def changed(now: float, before: float) -> str:
    """
    Return a change in parts of what was: `+12 %`, `12 ×`, `same`; nothing where it was zero and is not.

    >>> changed(112, 100), changed(100, 100), changed(1200, 100), changed(1, 0)
    ('+12 %', 'same', '12 ×', '')
    """
    if now == before:
        return SAME
    if before == 0:
        return ""
    ratio = now / before
    if ratio >= TIMES_FROM:
        return f"{ratio:,.0f} ×"
    points = abs(ratio - 1) * 100
    shown = f"{points:.0f}" if points >= 9.95 else figures.number(points, 2).text
    return f"{'+' if ratio > 1 else _MINUS}{shown} %"


def level(now: int | None, before: int | None) -> Was:
    """Return a height as it was, with the difference: `2 +11`."""
    if before is None:
        return NOT_ASKED
    if now is None:
        return Was(figures.exact(before))
    sign = "+" if now > before else _MINUS
    return Was(figures.exact(before), SAME if now == before else f"{sign}{abs(now - before):,}")


def share(now: Rate, before: Rate | None) -> Was:
    """Return a share as it was, with the difference in points where both samples bear one."""
    if before is None or not before.is_known:
        return NOT_ASKED
    if min(now.total, before.total) < figures.MIN_RATE_N:
        return Was(before.figure)
    if now.k * before.total == before.k * now.total:
        return Was(before.figure, SAME)
    low, high = difference(now.k, now.total, before.k, before.total)
    if low <= 0 <= high:
        change = UNCLEAR
    else:
        points = now.k / now.total - before.k / before.total
        change = f"{'+' if points > 0 else _MINUS}{figures.number(abs(points) * 100, 2)} points"
    return Was(before.figure, change, f"95 % interval of the change: {_signed(low)} to {_signed(high)} points")


def difference(k: int, n: int, k_before: int, n_before: int) -> tuple[float, float]:
    """
    Return the 95 % interval of the difference k / n - k_before / n_before.

    Args:
        k, k_before: hits, 0 to n.
        n, n_before: tries; 0 knows nothing, so the interval is then as wide as it may be.

    Raises:
        ValueError: hits are not within 0 to n.

    Source: R. G. Newcombe, "Interval estimation for the difference between independent proportions: comparison of
    eleven methods", Statistics in Medicine 1998, method 10: from the Wilson intervals of both.
    """
    now, then = figures.wilson(k, n), figures.wilson(k_before, n_before)
    middle = now.share - then.share
    return (
        middle - math.hypot(now.share - now.low, then.high - then.share),
        middle + math.hypot(now.high - now.share, then.share - then.low),
    )


def _signed(share: float) -> str:
    sign = _MINUS if share < 0 else "+"
    return f"{sign}{figures.number(abs(share) * 100, 2)}"
