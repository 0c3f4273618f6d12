-- Runs of `gnomon rebuild --prices`, a row when one begins and one when it is done. run: as in attempts.repricing. begins_at,
-- ends_at: the range of calls. books: vendor → which book priced its calls.
CREATE TABLE IF NOT EXISTS gnomon_core.repricings
(
    `at` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `run` UInt32,
    `epoch` UInt64,
    `is_done` Bool,
    `begins_at` DateTime64(3, 'UTC'),
    `ends_at` DateTime64(3, 'UTC'),
    `n` UInt64,
    `n_changed` UInt64,
    `usd_before` Decimal(38, 12),
    `usd_after` Decimal(38, 12),
    `books` Map(String, String)
)
ENGINE = MergeTree
ORDER BY (run, at)
