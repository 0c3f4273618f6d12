-- One generic path of a pair, after masks: path is the first example, n_paths how many it stands for.
-- Order: what differs for a method in a time range.
-- log_id, topic, part, off: place of the event in its log, the sink's key (exactly once); event_id: proc:seq of the proxy worker.
CREATE TABLE IF NOT EXISTS gnomon_core.findings
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `request_id` String CODEC(ZSTD(1)),
    `idx` UInt16 CODEC(T64, ZSTD(1)),
    `network` LowCardinality(String),
    `method` LowCardinality(String),
    `shadow_upstream` LowCardinality(String),
    `path` String CODEC(ZSTD(1)),
    `generic_path` LowCardinality(String),
    `n_paths` UInt32 CODEC(T64, ZSTD(1)),
    `class` LowCardinality(String),
    `primary_value` String CODEC(ZSTD(1)),
    `shadow_value` String CODEC(ZSTD(1)),
    `event_id` String CODEC(ZSTD(1)),
    `log_id` LowCardinality(String),
    `topic` LowCardinality(String),
    `part` UInt16 CODEC(ZSTD(1)),
    `off` UInt64 CODEC(Delta, ZSTD(1)),
    INDEX ix_request request_id TYPE bloom_filter(0.01) GRANULARITY 4
)
ENGINE = MergeTree
PARTITION BY toDate(at)
ORDER BY (network, method, generic_path, at)
SETTINGS min_parts_to_merge_at_once = 20, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
