-- One shadow and request: what was decided, mirrored or not. Order: coverage of one shadow in a time range.
-- log_id, topic, part, off: place of the event in its log, the sink's key (exactly once); event_id: proc:seq of the proxy worker.
CREATE TABLE IF NOT EXISTS gnomon_core.shadow_decisions
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `request_id` String CODEC(ZSTD(1)),
    `project` LowCardinality(String),
    `network` LowCardinality(String),
    `upstream` LowCardinality(String),
    `method` LowCardinality(String),
    `decision` LowCardinality(String),
    `event_id` String CODEC(ZSTD(1)),
    `log_id` LowCardinality(String),
    `topic` LowCardinality(String),
    `part` UInt16 CODEC(ZSTD(1)),
    `off` UInt64 CODEC(Delta, ZSTD(1)),
    INDEX ix_request request_id TYPE bloom_filter(0.01) GRANULARITY 4
)
ENGINE = MergeTree
PARTITION BY toDate(at)
ORDER BY (network, toStartOfHour(at), upstream, decision, at)
SETTINGS min_parts_to_merge_at_once = 20, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
