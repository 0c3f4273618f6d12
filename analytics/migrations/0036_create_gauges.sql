-- What only the machine of a service can see, every few seconds: its log on disk, its clock. name: log_written_events,
-- log_consumed_events, log_dropped_events, log_unread_ratio (by log), clock_skew_seconds (by whose clock). Written by the alert
-- service; its rules read it.
CREATE TABLE IF NOT EXISTS gnomon_core.gauges
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `name` LowCardinality(String),
    `subject` LowCardinality(String),
    `value` Float64 CODEC(Gorilla, ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(at)
ORDER BY (name, at)
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
