-- One call to one upstream, whoever asked for it. at: its end. attempt_id: internal calls only (others are named by request
-- and idx). units, usd: charged by the price book of the vendor; NULL = unpriced. block_number and head_latest are kept so
-- that history can be priced again. Order: a network and a time range, then an upstream.
-- log_id, topic, part, off: place of the event in its log, the sink's key (exactly once); event_id: proc:seq of the proxy worker.
CREATE TABLE IF NOT EXISTS gnomon_core.attempts
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `attempt_id` String CODEC(ZSTD(1)),
    `idx` UInt16 CODEC(T64, ZSTD(1)),
    `request_id` String CODEC(ZSTD(1)),
    `project` LowCardinality(String),
    `user` LowCardinality(String),
    `network` LowCardinality(String),
    `upstream` LowCardinality(String),
    `vendor` LowCardinality(String),
    `account` LowCardinality(String),
    `tier` LowCardinality(String),
    `kind` LowCardinality(String),
    `cause` LowCardinality(String),
    `method` LowCardinality(String),
    `outcome` LowCardinality(String),
    `error_class` LowCardinality(String),
    `error_code` Nullable(Int64) CODEC(ZSTD(1)),
    `status` UInt16 CODEC(T64, ZSTD(1)),
    `is_empty` Bool,
    `is_cancelled` Bool,
    `is_duplicate` Bool,
    `is_wasted` Bool,
    `start_us` UInt32 CODEC(T64, ZSTD(1)),
    `duration_us` UInt32 CODEC(T64, ZSTD(1)),
    `request_bytes` UInt32 CODEC(T64, ZSTD(1)),
    `response_bytes` UInt32 CODEC(T64, ZSTD(1)),
    `n_batch` UInt16 CODEC(T64, ZSTD(1)),
    `units` Nullable(Decimal(38, 12)) CODEC(ZSTD(1)),
    `usd` Nullable(Decimal(38, 12)) CODEC(ZSTD(1)),
    `is_estimate` Bool,
    `block_number` Nullable(UInt64) CODEC(ZSTD(1)),
    `head_latest` Nullable(UInt64) CODEC(ZSTD(1)),
    `event_id` String CODEC(ZSTD(1)),
    `log_id` LowCardinality(String),
    `topic` LowCardinality(String),
    `part` UInt16 CODEC(ZSTD(1)),
    `off` UInt64 CODEC(Delta, ZSTD(1)),
    INDEX ix_request request_id TYPE bloom_filter(0.01) GRANULARITY 4
)
ENGINE = MergeTree
PARTITION BY toDate(at)
ORDER BY (network, toStartOfHour(at), upstream, method, at)
SETTINGS min_parts_to_merge_at_once = 20, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
