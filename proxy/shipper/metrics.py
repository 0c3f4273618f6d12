"""
What the shipper counts. It writes them to a file beside the log, and the worker's /metrics shows them: one place to
ask, no port to find. Counters begin anew with each shipper.
"""

import os
from pathlib import Path
from typing import Final

from gnomon.events.shipped import FILE, samples
from gnomon.exposition import Definition, heading, sample

DEFINITIONS: Final[tuple[Definition, ...]] = (
    Definition("gnomon_shipper_up", "gauge", (), "1 while Kafka takes events, or would; 0: the log grows."),
    Definition("gnomon_shipper_lag_events", "gauge", (), "Events in the log that Kafka has not acknowledged."),
    Definition("gnomon_shipper_events_total", "counter", (), "Events that Kafka has acknowledged."),
    Definition("gnomon_shipper_bytes_total", "counter", (), "Their bytes, before compression."),
    Definition("gnomon_shipper_batches_total", "counter", (), "Batches that they travelled in."),
    Definition("gnomon_shipper_reconnects_total", "counter", (),
               "Times that a new producer was needed; the first one counts."),
    Definition("gnomon_shipper_dead_letters_total", "counter", ("reason",),
               "Records without an event or refused by the cluster, by reason."),
    Definition("gnomon_shipper_lost_events_total", "counter", (),
               "Events gone from the log before they were sent: each is a loss."),
    Definition("gnomon_shipper_log_failed", "gauge", (), "1 = the log cannot be read; the log line says why."),
    Definition("gnomon_shipper_cpu_seconds_total", "counter", (), "Processor time of the shipper's process."),
)  # fmt: skip


class Counts:
    """Of one log."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], float] = {(d.name, ""): 0.0 for d in DEFINITIONS if not d.labels}

    def add(self, name: str, value: float = 1.0, reason: str = "") -> None:
        """Add to a counter."""
        self.values[name, reason] = self.values.get((name, reason), 0.0) + value

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        self.values[name, ""] = value

    def get(self, name: str, reason: str = "") -> float:
        """Return a value."""
        return self.values.get((name, reason), 0.0)

    def write(self, log_folder: Path) -> None:
        """Write the file; it appears whole or not at all."""
        lines = (
            sample(name, {"reason": reason} if reason else {}, value) for (name, reason), value in self.values.items()
        )
        unfinished = log_folder / f"{FILE}.new"
        unfinished.write_text("\n".join(lines) + "\n")
        os.replace(unfinished, log_folder / FILE)


def exposition(log_folder: Path) -> str:
    """Return the text for /metrics; none where no shipper has ever been, and `up` 0 alone where none is now."""
    found = samples(log_folder)
    lines: list[str] = []
    for definition in DEFINITIONS:
        own = [line for line in found if line.replace("{", " ").split(" ", 1)[0] == definition.name]
        if own:
            lines += [*heading(definition), *own]
    return "".join(line + "\n" for line in lines)
