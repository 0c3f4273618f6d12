-- Verdicts per minute.
-- A table of the sink: one row per group, log and batch, off = greatest offset that went in; rows of a group merge by themselves.
CREATE TABLE IF NOT EXISTS gnomon_core.divergence_minutely
(
    `minute` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `network` LowCardinality(String),
    `method` LowCardinality(String),
    `shadow_upstream` LowCardinality(String),
    `outcome` LowCardinality(String),
    `class` LowCardinality(String),
    `finality` LowCardinality(String),
    `n` SimpleAggregateFunction(sum, UInt64),
    `log_id` LowCardinality(String),
    `topic` LowCardinality(String),
    `part` UInt16,
    `off` SimpleAggregateFunction(max, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(minute)
ORDER BY (minute, network, method, shadow_upstream, outcome, class, finality, log_id, topic, part)
SETTINGS min_parts_to_merge_at_once = 20, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
