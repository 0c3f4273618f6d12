-- Owners of a key (log_id, topic, part): an insert runs only under the greatest epoch of its key (the fence).
CREATE TABLE IF NOT EXISTS gnomon_core.sink_epochs
(
    `log_id` String,
    `topic` String,
    `part` UInt16,
    `epoch` UInt64,
    `at` DateTime64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY (log_id, topic, part, epoch)
