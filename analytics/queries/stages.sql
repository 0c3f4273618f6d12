-- question: How far is what was accepted stored, and since when is nothing new?
-- grain: one row
-- column last_stored_at DateTime64(3, 'UTC') [UTC]: when a sink last stored something; 1970 = never
-- column n_logs UInt64 [logs]: logs, or partitions, that were read
-- column n_unread UInt64 [events]: accepted by their logs and not yet stored, as their sinks last saw it
-- column n_dropped UInt64 [events]: lost, because a log was full
-- column n_dead UInt64 [events]: put aside as poison, and kept
SELECT
    max(at) AS last_stored_at,
    count() AS n_logs,
    toUInt64(sum(greatest(log_end, next) - next)) AS n_unread,
    sum(dropped) AS n_dropped,
    ifNull((SELECT count() FROM gnomon.dead_letters), 0) AS n_dead
FROM gnomon.progress
LIMIT 1
