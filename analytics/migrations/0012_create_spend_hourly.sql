-- What calls cost, per hour. usd: sum over the priced calls; NULL = none was priced.
-- A table of the sink: one row per group, log and batch, off = greatest offset that went in; rows of a group merge by themselves.
CREATE TABLE IF NOT EXISTS gnomon_core.spend_hourly
(
    `hour` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `project` LowCardinality(String),
    `network` LowCardinality(String),
    `vendor` LowCardinality(String),
    `account` LowCardinality(String),
    `upstream` LowCardinality(String),
    `tier` LowCardinality(String),
    `kind` LowCardinality(String),
    `cause` LowCardinality(String),
    `method` LowCardinality(String),
    `n` SimpleAggregateFunction(sum, UInt64),
    `n_wasted` SimpleAggregateFunction(sum, UInt64),
    `n_unpriced` SimpleAggregateFunction(sum, UInt64),
    `units` SimpleAggregateFunction(sum, Nullable(Decimal(38, 12))),
    `usd` SimpleAggregateFunction(sum, Nullable(Decimal(38, 12))),
    `log_id` LowCardinality(String),
    `topic` LowCardinality(String),
    `part` UInt16,
    `off` SimpleAggregateFunction(max, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (hour, project, network, vendor, account, upstream, tier, kind, cause, method, log_id, topic, part)
SETTINGS min_parts_to_merge_at_once = 20, ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
