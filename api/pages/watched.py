"""What several panels of one page read: how clients are served, what fires, which shadow differs most."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from api.pages import figures, known, steps
from api.pages.figures import iso
from api.pages.page import Around
from api.pages.told import GLYPHS, Told, told

N_STEPS = 180
NOW_SECONDS = 300
"""What `now` means for a rate: the last five minutes of the range."""


async def service(around: Around) -> Mapping[str, Any] | None:
    """Return how clients were served in the last five minutes of the range; None where nobody asked."""
    start = around.view.span.end - timedelta(seconds=NOW_SECONDS)
    rows = await around.rows("service_over_time", from_=iso(start), step=str(NOW_SECONDS))
    return rows[0] if rows else None


async def firing(around: Around) -> list[Told]:
    """Return what fires now, the worst first, the oldest first among equals."""
    rows = await around.rows("alerts_firing", from_="now-90d")
    severity = {rule.name: str(rule.severity) for rule in around.rules}
    found = [told(row, severity.get(row["rule"], ""), around.view) for row in rows]
    if around.view.networks:
        found = [one for one in found if not one.network or one.network in around.view.networks]
    order = list(GLYPHS.values())
    return sorted(found, key=lambda one: (order.index(one.glyph), one.since))


def step_of(around: Around, n_steps: int = N_STEPS) -> int:
    """Return the seconds of a step, for so many over the range."""
    return steps.seconds_of(around.view.span, n_steps)


def candidate(rows: Sequence[Mapping[str, Any]], around: Around) -> Mapping[str, Any] | None:
    """Return the shadow that differs most, control shadows left out; None where nothing was compared."""
    controls = {(one.network, one.id) for one in known.upstreams(around.settings) if one.is_control}
    judged = [r for r in rows if r["n_judged"] and (r["network"], r["shadow_upstream"]) not in controls]
    return max(judged, key=lambda r: (figures.wilson(r["mismatch"], r["n_judged"]).low, r["n_judged"]), default=None)


def listed(names: Sequence[str]) -> str:
    """Return names in one phrase: `a, b and c`, or two of them and how many more."""
    if len(names) > 3:
        return f"{', '.join(names[:2])} and {len(names) - 2} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 2 else names)
