-- Events per hour (by the event's own time): accepted by the log, shipped to the sink, stored (one row in the table where the
-- event is at home), stored without repetition, put aside as poison. accepted = shipped = stored + dead_lettered and
-- stored = distinct_stored, or something is wrong. Embedded, the sink reads the log itself: shipped counts the records it
-- has done with, accepted adds what lay unread in the log at its last sign of life. Hours older than the oldest row kept are
-- left out; hour 1970-01-01 holds records whose time could not be read. The oldest row is looked up by count and min alone,
-- which ClickHouse answers from what it keeps of each part.
CREATE OR REPLACE VIEW gnomon.reconciliation
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
WITH
    (
        SELECT min(first_at)
        FROM
        (
            SELECT if(count() = 0, NULL, min(at)) AS first_at FROM gnomon_core.requests
            UNION ALL SELECT if(count() = 0, NULL, min(at)) FROM gnomon_core.comparisons
            UNION ALL SELECT if(count() = 0, NULL, min(at)) FROM gnomon_core.attempts
            UNION ALL SELECT if(count() = 0, NULL, min(at)) FROM gnomon_core.heads
        )
    ) AS oldest_at
SELECT
    hour,
    sum(n_accepted) AS accepted,
    sum(n_shipped) AS shipped,
    sum(n_stored) AS stored,
    sum(n_distinct) AS distinct_stored,
    sum(n_dead) AS dead_lettered
FROM
(
    SELECT hour, toUInt64(n) AS n_accepted, toUInt64(n) AS n_shipped, toUInt64(0) AS n_stored, toUInt64(0) AS n_distinct, toUInt64(0) AS n_dead
    FROM gnomon_core.sink_progress
    UNION ALL
    SELECT toStartOfHour(max(at)), toUInt64(greatest(max(log_end), max(next)) - max(next)), toUInt64(0), toUInt64(0), toUInt64(0), toUInt64(0)
    FROM gnomon_core.sink_progress
    GROUP BY log_id, topic, part
    UNION ALL
    SELECT hour, toUInt64(0), toUInt64(0), count(), uniqExact(off), toUInt64(0)
    FROM
    (
        SELECT toStartOfHour(at) AS hour, log_id, topic, part, off FROM gnomon_core.requests
        UNION ALL SELECT toStartOfHour(at), log_id, topic, part, off FROM gnomon_core.comparisons WHERE topic != 'missing'
        UNION ALL SELECT toStartOfHour(at), log_id, topic, part, off FROM gnomon_core.attempts WHERE attempt_id != ''
        UNION ALL SELECT toStartOfHour(at), log_id, topic, part, off FROM gnomon_core.heads
        UNION ALL SELECT toStartOfHour(at), log_id, topic, part, off FROM gnomon_core.reorgs
        UNION ALL SELECT toStartOfHour(at), log_id, topic, part, off FROM gnomon_core.breaker_transitions
    )
    GROUP BY hour, log_id, topic, part
    UNION ALL
    SELECT toStartOfHour(event_at), toUInt64(0), toUInt64(0), toUInt64(0), toUInt64(0), count()
    FROM gnomon_core.dead_letters
    GROUP BY toStartOfHour(event_at)
)
WHERE hour >= toStartOfHour(oldest_at) OR hour < toDateTime64('1971-01-01 00:00:00', 3, 'UTC')
GROUP BY hour
HAVING accepted + stored + dead_lettered > 0
