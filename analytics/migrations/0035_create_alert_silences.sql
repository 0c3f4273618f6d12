-- Silences of alerts. The newest row of an id is in force; one that ends at once takes it back.
CREATE TABLE IF NOT EXISTS gnomon_core.alert_silences
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `silence_id` String,
    `rule` String,
    `subject` String,
    `starts_at` DateTime64(3, 'UTC'),
    `ends_at` DateTime64(3, 'UTC'),
    `comment` String,
    `author` String
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (silence_id, at)
SETTINGS ttl_only_drop_parts = 1, materialize_ttl_recalculate_only = 1
