-- A change of state of one rule and subject, and whether it was delivered. Written by the alert service, not by the sink.
CREATE TABLE IF NOT EXISTS gnomon_core.alerts
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `rule` LowCardinality(String),
    `state` LowCardinality(String),
    `subject` String CODEC(ZSTD(1)),
    `value` Float64,
    `threshold` Float64,
    `severity` LowCardinality(String),
    `since` DateTime64(3, 'UTC'),
    `delivered` Bool,
    `fingerprint` String CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (rule, subject, at)
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
