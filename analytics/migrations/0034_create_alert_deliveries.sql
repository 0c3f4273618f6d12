-- What each receiver is to get, and what became of it: a row when a change is to be told (is_delivered false), one when a try
-- fails, one when it arrived. changed_at, fingerprint, state: the row of alerts. body: what is told, as JSON.
CREATE TABLE IF NOT EXISTS gnomon_core.alert_deliveries
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `changed_at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `fingerprint` String CODEC(ZSTD(1)),
    `rule` LowCardinality(String),
    `state` LowCardinality(String),
    `receiver` LowCardinality(String),
    `is_delivered` Bool,
    `n_tries` UInt32 CODEC(T64, ZSTD(1)),
    `error` String CODEC(ZSTD(1)),
    `body` String CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (changed_at, fingerprint, receiver, at)
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
