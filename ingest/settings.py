"""
What the processors need of the configuration, and the context of the steps made from it.
"""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from gnomon.config.model import Quantile, Settings
from gnomon.cost.book import configured, shipped
from gnomon.cost.charge import Charger, PriceBooks
from ingest.comparisons import Policies
from ingest.missing import GRACE_SECONDS
from ingest.rows import Context

DEFAULT_SHADOW_TIMEOUT_SECONDS = 10.0
"""A shadow's timeout where its failsafe names none (behaviour of shadows)."""
CONSUMER = "ingest"
"""The name under which the log keeps our position."""
TOPIC = "log"
"""Topic of a key whose events are read from a log on disk."""


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """The embedded runner's: when to store, and how much at once."""

    flush_seconds: float = 0.8
    """Between the beginnings of two batches, when events come without a pause."""
    quick_flush_seconds: float = 0.25
    """After the first event that follows a pause."""
    max_events: int = 20_000
    max_bytes: int = 32 << 20
    """A batch is stored at once when it has so many events or bytes."""
    progress_seconds: float = 2.0
    """Longest time between storing and writing down how far."""
    poll_seconds: float = 0.05
    scan_seconds: float = 1.0
    """Between looks for new worker folders."""
    retry_seconds: float = 0.2
    max_retry_seconds: float = 2.0
    failed_retry_seconds: float = 15.0
    """Between looks at a log that cannot be read."""
    missing_seconds: float = 30.0
    """Between looks for mirrored calls that never ended."""
    missing_horizon_seconds: float = 70.0
    """How old a mirrored decision without a verdict must be."""
    repeat_line_seconds: float = 30.0
    """A trouble that stays is said again after so long."""


def runner_settings(settings: Settings) -> RunnerSettings:
    """Return the runner's settings: the longest timeout of any shadow decides when a mirrored call is missing."""
    longest = DEFAULT_SHADOW_TIMEOUT_SECONDS
    for project in settings.projects:
        for upstream in project.upstreams:
            if upstream.tier == "shadow":
                for entry in upstream.failsafe:
                    if isinstance(entry.timeout, Quantile):
                        longest = max(longest, entry.timeout.max_seconds)
                    elif entry.timeout is not None:
                        longest = max(longest, entry.timeout)
    return RunnerSettings(missing_horizon_seconds=longest + GRACE_SECONDS)


def log_root(settings: Settings, data_dir: Path | None) -> Path:
    """Return the folder that holds one log per proxy worker."""
    configured = settings.gnomon.events.log.path
    if configured:
        return Path(configured)
    return (data_dir or Path("gnomon-data")) / "events"


def context(settings: Settings) -> Context:
    """
    Return the context of the steps.

    Raises:
        PriceBookError: a configured book cannot be read or used.
    """
    shadow = settings.gnomon.shadow
    books = PriceBooks(shipped(), configured(settings.gnomon.pricing.files))
    return Context(
        charger=Charger(books, _own_units(settings), _archives(settings)),
        policies=Policies(shadow.tolerate),
        keep_bodies=shadow.keep_bodies,
        sample_identical_bodies=shadow.sample_identical_bodies,
    )


def _own_units(settings: Settings) -> dict[tuple[str, str], dict[str, Decimal]]:
    return {
        (project.id, upstream.id): {method: Decimal(units) for method, units in upstream.credit_units.items()}
        for project in settings.projects
        for upstream in project.upstreams
        if upstream.credit_units
    }


def _archives(settings: Settings) -> dict[tuple[str, str], bool]:
    return {
        (project.id, upstream.id): upstream.has_archive
        for project in settings.projects
        for upstream in project.upstreams
        if upstream.has_archive is not None
    }
