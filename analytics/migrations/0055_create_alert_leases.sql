-- Which of several alert services tells: the greatest (epoch, holder) leads while it goes on writing rows. holder: a data folder or
-- a process; host: its name, for people. state: claiming, leading, released, or standing_by (epoch 0). at: ClickHouse's own time.
CREATE TABLE IF NOT EXISTS gnomon_core.alert_leases
(
    `at` DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `epoch` UInt64,
    `holder` String,
    `host` String,
    `state` LowCardinality(String)
)
ENGINE = MergeTree
PARTITION BY toDate(at)
ORDER BY (epoch, holder, at)
TTL toDateTime(at) + toIntervalDay(2)
SETTINGS ttl_only_drop_parts = 1
