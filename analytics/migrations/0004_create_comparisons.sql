-- One pair and its first verdict. params, heads: what judging the pair again needs (params only where the bytes differ).
-- Order: a network and a time range, then a shadow and a method.
-- log_id, topic, part, off: place of the event in its log, the sink's key (exactly once); event_id: proc:seq of the proxy worker.
CREATE TABLE IF NOT EXISTS gnomon_core.comparisons
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `request_id` String CODEC(ZSTD(1)),
    `project` LowCardinality(String),
    `user` LowCardinality(String),
    `network` LowCardinality(String),
    `method` LowCardinality(String),
    `primary_upstream` LowCardinality(String),
    `shadow_upstream` LowCardinality(String),
    `outcome` LowCardinality(String),
    `class` LowCardinality(String),
    `classes` Array(LowCardinality(String)),
    `finality` LowCardinality(String),
    `settled` LowCardinality(String),
    `suspect` LowCardinality(String),
    `reason` LowCardinality(String),
    `block_number` Nullable(UInt64) CODEC(ZSTD(1)),
    `is_emptyish` Bool,
    `is_larger` Bool,
    `is_control` Bool,
    `primary_kind` LowCardinality(String),
    `shadow_kind` LowCardinality(String),
    `primary_hash` String CODEC(ZSTD(1)),
    `shadow_hash` String CODEC(ZSTD(1)),
    `primary_bytes` UInt32 CODEC(T64, ZSTD(1)),
    `shadow_bytes` UInt32 CODEC(T64, ZSTD(1)),
    `primary_error_class` LowCardinality(String),
    `shadow_error_class` LowCardinality(String),
    `primary_duration_us` UInt32 CODEC(T64, ZSTD(1)),
    `shadow_duration_us` UInt32 CODEC(T64, ZSTD(1)),
    `mask_version` LowCardinality(String),
    `tolerance_version` LowCardinality(String),
    `n_findings` UInt16 CODEC(T64, ZSTD(1)),
    `n_masked` UInt32 CODEC(T64, ZSTD(1)),
    `params` String CODEC(ZSTD(1)),
    `head_latest` Nullable(UInt64) CODEC(ZSTD(1)),
    `head_finalized` Nullable(UInt64) CODEC(ZSTD(1)),
    `primary_head` Nullable(UInt64) CODEC(ZSTD(1)),
    `shadow_head` Nullable(UInt64) CODEC(ZSTD(1)),
    `config_hash` LowCardinality(String),
    `event_id` String CODEC(ZSTD(1)),
    `log_id` LowCardinality(String),
    `topic` LowCardinality(String),
    `part` UInt16 CODEC(ZSTD(1)),
    `off` UInt64 CODEC(Delta, ZSTD(1)),
    INDEX ix_request request_id TYPE bloom_filter(0.01) GRANULARITY 4
)
ENGINE = MergeTree
PARTITION BY toDate(at)
ORDER BY (network, toStartOfHour(at), shadow_upstream, method, at)
SETTINGS min_parts_to_merge_at_once = 20, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
