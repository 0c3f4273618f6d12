-- A breaker's change of state. Order: one network in time.
-- log_id, topic, part, off: place of the event in its log, the sink's key (exactly once); event_id: proc:seq of the proxy worker.
CREATE TABLE IF NOT EXISTS gnomon_core.breaker_transitions
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `network` LowCardinality(String),
    `upstream` LowCardinality(String),
    `from_state` LowCardinality(String),
    `to_state` LowCardinality(String),
    `reason` LowCardinality(String),
    `scope` LowCardinality(String),
    `counters` Map(String, UInt64),
    `event_id` String CODEC(ZSTD(1)),
    `log_id` LowCardinality(String),
    `topic` LowCardinality(String),
    `part` UInt16 CODEC(ZSTD(1)),
    `off` UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(at)
ORDER BY (network, upstream, at)
SETTINGS min_parts_to_merge_at_once = 20, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
