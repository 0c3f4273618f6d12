"""
What the processors count, in Prometheus' text form: one closed list, bounded labels.

Counters begin at 0 with the process. A batch that was stored by an earlier life of the process and is only gone
through again is counted again: counts over all time are SQL's business.
"""

from typing import Final

from gnomon.exposition import Definition, Values
from gnomon.rpc.methods import lookup
from ingest.comparisons import Alike
from ingest.rows import Step

_PAIR = ("project", "vendor", "network", "upstream", "method")

DEFINITIONS: Final[tuple[Definition, ...]] = (
    Definition("gnomon_shadow_identical_total", "counter", (*_PAIR, "finality"),
               "Pairs that are identical, by bytes, value, mask or tolerance."),
    Definition("gnomon_shadow_mismatch_total", "counter", (*_PAIR, "finality", "emptyish", "larger"),
               "Pairs that differ. Look at finality=finalized first: differences on newer blocks may pass."),
    Definition("gnomon_shadow_error_total", "counter", (*_PAIR, "error"),
               "Pairs without a verdict: no answer on one side, none at all, or a limit was reached."),
    Definition("gnomon_shadow_skipped_total", "counter", (*_PAIR, "reason"),
               "Requests that were not mirrored, by decision, and pairs that cannot be compared (incomparable)."),
    Definition("gnomon_ingest_events_total", "counter", (), "Events that went through, poison included."),
    Definition("gnomon_ingest_dead_letters_total", "counter", ("reason",), "Records that can never be stored."),
    Definition("gnomon_ingest_batches_total", "counter", (), "Batches stored."),
    Definition("gnomon_ingest_store_seconds_total", "counter", (), "Time spent storing; per batch: divide by batches."),
    Definition("gnomon_ingest_inserts_total", "counter", (), "Inserts sent."),
    Definition("gnomon_ingest_take_overs_total", "counter", (),
               "Times that a log was taken over: 1 per log and start; more means inserts with unknown outcome."),
    Definition("gnomon_ingest_lost_events_total", "counter", ("log",),
               "Events that were gone from a log before they were read. Anything above 0 is a loss."),
    Definition("gnomon_ingest_missing_total", "counter", ("log",),
               "Mirrored calls that never ended (a killed proxy); each has a comparison with outcome missing."),
    Definition("gnomon_ingest_repeated_total", "counter", ("log",),
               "Events that a shipper sent again, left out. After a restart of a shipper some are normal."),
    Definition("gnomon_ingest_lag_events", "gauge", ("log",), "Events in a log that are not stored yet."),
    Definition("gnomon_ingest_freshness_seconds", "gauge", ("log",),
               "Age of the last batch's newest event when it was stored."),
    Definition("gnomon_ingest_log_dropped", "gauge", ("log",), "Events that a full log refused since it began."),
    Definition("gnomon_ingest_log_failed", "gauge", ("log",), "1 = the log cannot be read; the log line says why."),
    Definition("gnomon_ingest_reloads_total", "counter", ("result",),
               "Configurations read again at SIGHUP, by result (ok, invalid)."),
    Definition("gnomon_ingest_partitions", "gauge", (), "Kafka partitions that the group has given to this worker."),
    Definition("gnomon_ingest_engine_up", "gauge", (), "1 = the last statement to ClickHouse was answered."),
)  # fmt: skip


class Metrics(Values):
    """The processors' values."""

    def __init__(self) -> None:
        super().__init__(DEFINITIONS)

    def observe(self, step: Step) -> None:
        """Count what a stored batch says of shadows."""
        for pair, n in step.pairs.items():
            self.add(*pair_metric(pair), n)
        for (project, network, upstream, method, decision), n in step.skipped.items():
            # The vendor of a shadow is known where it was called; here it was not.
            self.add("gnomon_shadow_skipped_total", (project, "", network, upstream, method, decision), n)
        for one in step.poison:
            self.add("gnomon_ingest_dead_letters_total", (one.reason,))


def pair_metric(pair: Alike) -> tuple[str, tuple[str, ...]]:
    """Return which metric a pair counts in, and under which labels."""
    method = pair.method if lookup(pair.method).is_known else "_OTHER"
    labels = (pair.project, pair.vendor, pair.network, pair.upstream, method)
    outcome = pair.outcome
    if outcome in ("identical", "identical_masked", "tolerated"):
        return "gnomon_shadow_identical_total", (*labels, pair.finality)
    if outcome == "mismatch":
        flags = ("true" if pair.is_emptyish else "false", "true" if pair.is_larger else "false")
        return "gnomon_shadow_mismatch_total", (*labels, pair.finality, *flags)
    if outcome == "incomparable":
        return "gnomon_shadow_skipped_total", (*labels, "incomparable")
    return "gnomon_shadow_error_total", (*labels, f"{outcome}:{pair.error}" if pair.error else outcome)
