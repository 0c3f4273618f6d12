-- How upstreams answered, per minute: calls for clients, probes and shadows; head polls and chain checks left out.
-- durations: us (rounded to five significant bits, within 3.2 %) -> calls, so that quantiles stay exact under merging.
-- A table of the sink: one row per group, log and batch, off = greatest offset that went in; rows of a group merge by themselves.
CREATE TABLE IF NOT EXISTS gnomon_core.health_minutely
(
    `minute` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `network` LowCardinality(String),
    `upstream` LowCardinality(String),
    `tier` LowCardinality(String),
    `n` SimpleAggregateFunction(sum, UInt64),
    `n_failed` SimpleAggregateFunction(sum, UInt64),
    `n_empty` SimpleAggregateFunction(sum, UInt64),
    `durations` SimpleAggregateFunction(sumMap, Map(UInt32, UInt64)),
    `log_id` LowCardinality(String),
    `topic` LowCardinality(String),
    `part` UInt16,
    `off` SimpleAggregateFunction(max, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(minute)
ORDER BY (minute, network, upstream, tier, log_id, topic, part)
SETTINGS min_parts_to_merge_at_once = 20, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
