-- question: Is everything that was accepted stored, once?
-- grain: one row per hour of the events' own time
-- param from DateTime64(3) = now-24h: start of the range, included; whole hours
-- param to DateTime64(3) = now: end of the range, not included
-- column hour DateTime64(3, 'UTC') [UTC]: the hour; 1970-01-01 = records whose time could not be read
-- column accepted UInt64 [events]: taken by the log
-- column shipped UInt64 [events]: handed on
-- column stored UInt64 [events]: with a row in the table where they are at home
-- column distinct_stored UInt64 [events]: the same, each counted once
-- column dead_lettered UInt64 [events]: put aside as poison
-- column is_whole UInt8: accepted = shipped = stored + dead_lettered, and nothing twice; the running hour once traffic rests
SELECT
    hour,
    accepted,
    shipped,
    stored,
    distinct_stored,
    dead_lettered,
    accepted = shipped AND shipped = stored + dead_lettered AND stored = distinct_stored AS is_whole
FROM gnomon.reconciliation
WHERE (hour >= toStartOfHour({from:DateTime64(3)}) AND hour < {to:DateTime64(3)})
    OR hour < toDateTime64('1971-01-01 00:00:00', 3, 'UTC')
ORDER BY hour
LIMIT 10000
