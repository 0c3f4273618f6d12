-- Records that can never be stored, with their bytes. at: when the sink first met the record; event_at: the record's own time
-- where one can be read from it, else 1970-01-01. Not partitioned: the partition of a row may depend on the record's bytes only.
CREATE TABLE IF NOT EXISTS gnomon_core.dead_letters
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `event_at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `reason` LowCardinality(String),
    `detail` String CODEC(ZSTD(1)),
    `bytes` String CODEC(ZSTD(1)),
    `log_id` LowCardinality(String),
    `topic` LowCardinality(String),
    `part` UInt16,
    `off` UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = MergeTree
ORDER BY (log_id, topic, part, off)
SETTINGS min_parts_to_merge_at_once = 20
