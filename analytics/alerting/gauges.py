"""
What is in no event: the logs of the proxies and their shippers, and how far ClickHouse's clock is from ours.

Logs are looked at on disk where they are on this machine (`log_samples`), else by what the proxies' /metrics say
(`proxy_samples`); both give the same names.
"""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from gnomon.events import shipped
from gnomon.events.errors import LogError
from gnomon.events.log.status import status

Sample = tuple[str, str, float]
"""Name, subject, value."""
SHIPPER: Final = "shipper"
"""The shipper's name among the consumers of a log."""


def log_samples(root: Path, max_bytes: int, place: str = "") -> list[Sample]:
    """
    Return samples of the logs below a folder; none where there are none.

    Those of the shipper only where one is or was. `place` tells them from those of another machine's logs.
    """
    samples: list[Sample] = []
    folders = sorted(f for f in root.iterdir() if f.name.isdigit() and f.is_dir()) if root.is_dir() else []
    for folder in folders:
        try:
            log = status(folder)
        except (LogError, OSError):
            continue
        subject = f"{place}/{folder.name}" if place else folder.name
        samples += [
            ("log_written_events", subject, float(log.accepted)),
            ("log_consumed_events", subject, float(log.consumed)),
            ("log_dropped_events", subject, float(log.dropped)),
            ("log_unread_ratio", subject, log.unread_ratio(max_bytes)),
        ]
        if (up := _values(shipped.samples(folder)).get(shipped.UP)) is not None:
            samples += [
                ("shipper_up", subject, up),
                ("shipper_lag_events", subject, float(log.lag_by_consumer.get(SHIPPER, log.accepted - log.start))),
            ]
    return samples


def proxy_samples(subject: str, exposition: str) -> list[Sample]:
    """
    Return the same samples from the text of a proxy's /metrics; what it does not say is left out.

    Args:
        subject: the proxy's name.
        exposition: in Prometheus' text format.
    """
    values = _values(exposition.splitlines())
    written = values.get("gnomon_log_written_total")
    if written is None:
        return []
    lags = {
        name.partition('consumer="')[2].partition('"')[0]: value
        for name, value in values.items()
        if name.startswith("gnomon_log_lag_records{")
    }
    found = {
        "log_written_events": written,
        "log_consumed_events": written - max(lags.values()) if lags else None,
        "log_dropped_events": values.get("gnomon_log_dropped_total"),
        "log_unread_ratio": values.get("gnomon_log_unread_ratio"),
        "shipper_up": values.get(shipped.UP),
        "shipper_lag_events": lags.get(SHIPPER) if shipped.UP in values else None,
    }
    return [(name, subject, value) for name, value in found.items() if value is not None]


def _values(lines: Iterable[str]) -> dict[str, float]:
    """Return the values in lines of Prometheus' text format, by name with labels; other lines are passed over."""
    found: dict[str, float] = {}
    for line in lines:
        name, _, text = line.rpartition(" ")
        if name and not name.startswith("#"):
            try:
                found[name] = float(text)
            except ValueError:
                continue
    return found


def clock_sample(before: datetime, theirs: datetime, after: datetime, place: str = "") -> Sample:
    """Return how far ClickHouse's clock is ahead of ours; times of our clock before and after asking it."""
    skew = 0.0
    if theirs < before:
        skew = (theirs - before).total_seconds()
    elif theirs > after:
        skew = (theirs - after).total_seconds()
    return ("clock_skew_seconds", f"clickhouse, seen from {place}" if place else "clickhouse", skew)
