-- Replaced blocks, as seen at one upstream. Order: one network in time.
-- log_id, topic, part, off: place of the event in its log, the sink's key (exactly once); event_id: proc:seq of the proxy worker.
CREATE TABLE IF NOT EXISTS gnomon_core.reorgs
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `network` LowCardinality(String),
    `upstream` LowCardinality(String),
    `number` UInt64 CODEC(Delta, ZSTD(1)),
    `depth` UInt32 CODEC(T64, ZSTD(1)),
    `old_hash` String CODEC(ZSTD(1)),
    `new_hash` String CODEC(ZSTD(1)),
    `event_id` String CODEC(ZSTD(1)),
    `log_id` LowCardinality(String),
    `topic` LowCardinality(String),
    `part` UInt16 CODEC(ZSTD(1)),
    `off` UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(at)
ORDER BY (network, at)
SETTINGS min_parts_to_merge_at_once = 20, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
