-- Answers by their content: hash is the xxh3-128 of the raw fragment. A set: the same body stored twice counts once.
-- Partitioned by day of the event that carried it, so that the retention of a day's pairs is that of their bodies.
-- log_id, topic, part, off: place of the event in its log, the sink's key (exactly once); event_id: proc:seq of the proxy worker.
CREATE TABLE IF NOT EXISTS gnomon_core.bodies
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `hash` String CODEC(ZSTD(1)),
    `n_bytes` UInt32 CODEC(T64, ZSTD(1)),
    `is_head_only` Bool,
    `body` String CODEC(ZSTD(1)),
    `event_id` String CODEC(ZSTD(1)),
    `log_id` LowCardinality(String),
    `topic` LowCardinality(String),
    `part` UInt16 CODEC(ZSTD(1)),
    `off` UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(at)
ORDER BY (hash)
SETTINGS min_parts_to_merge_at_once = 20, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1, index_granularity = 256
