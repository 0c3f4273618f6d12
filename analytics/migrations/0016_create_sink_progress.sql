-- How far a key (log_id, topic, part) is stored: every record below next is. n counts the records of an hour (by the event's
-- time; 1970-01-01 = no time could be read), written with next in one block, so that it is exact. log_end, dropped: the
-- log's own end and count of dropped events when the row was written.
CREATE TABLE IF NOT EXISTS gnomon_core.sink_progress
(
    `log_id` String,
    `topic` String,
    `part` UInt16,
    `hour` DateTime64(3, 'UTC'),
    `n` SimpleAggregateFunction(sum, UInt64),
    `next` SimpleAggregateFunction(max, UInt64),
    `epoch` SimpleAggregateFunction(max, UInt64),
    `log_end` SimpleAggregateFunction(max, UInt64),
    `dropped` SimpleAggregateFunction(max, UInt64),
    `at` SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (log_id, topic, part, hour)
SETTINGS min_parts_to_merge_at_once = 20
