-- One client request (each element of a batch is one). Order follows the commonest filter: a network and a time range,
-- then a method.
-- log_id, topic, part, off: place of the event in its log, the sink's key (exactly once); event_id: proc:seq of the proxy worker.
CREATE TABLE IF NOT EXISTS gnomon_core.requests
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `request_id` String CODEC(ZSTD(1)),
    `batch_id` String CODEC(ZSTD(1)),
    `project` LowCardinality(String),
    `network` LowCardinality(String),
    `user` LowCardinality(String),
    `agent` LowCardinality(String),
    `method` LowCardinality(String),
    `params` String CODEC(ZSTD(1)),
    `rpc_id` String CODEC(ZSTD(1)),
    `block_number` Nullable(UInt64) CODEC(ZSTD(1)),
    `block_tag` LowCardinality(String),
    `outcome` LowCardinality(String),
    `error_class` LowCardinality(String),
    `reject_reason` LowCardinality(String),
    `upstream` LowCardinality(String),
    `tier` LowCardinality(String),
    `n_attempts` UInt16 CODEC(T64, ZSTD(1)),
    `n_skipped_open` UInt16 CODEC(T64, ZSTD(1)),
    `cause` LowCardinality(String),
    `short_circuited` Bool,
    `beyond_head` Bool,
    `escaped` Bool,
    `duration_us` UInt32 CODEC(T64, ZSTD(1)),
    `request_bytes` UInt32 CODEC(T64, ZSTD(1)),
    `response_bytes` UInt32 CODEC(T64, ZSTD(1)),
    `answer_kind` LowCardinality(String),
    `answer_hash` String CODEC(ZSTD(1)),
    `head_latest` Nullable(UInt64) CODEC(ZSTD(1)),
    `head_finalized` Nullable(UInt64) CODEC(ZSTD(1)),
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
ORDER BY (network, toStartOfHour(at), method, at)
SETTINGS min_parts_to_merge_at_once = 20, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
