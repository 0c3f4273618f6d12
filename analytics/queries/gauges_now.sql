-- question: What do the machines of the services say of their logs and clocks?
-- grain: one row per gauge and subject
-- param from DateTime64(3) = now-10m: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- column name String: log_written_events, log_consumed_events, log_dropped_events, log_unread_ratio, clock_skew_seconds and so on
-- column subject String: which log, or whose clock
-- column value Float64: as it was last
-- column at DateTime64(3, 'UTC') [UTC]: when
SELECT name, subject, argMax(g.value, g.at) AS value, max(g.at) AS at
FROM gnomon.gauges AS g
WHERE g.at >= {from:DateTime64(3)} AND g.at < {to:DateTime64(3)}
GROUP BY name, subject
ORDER BY name, subject
LIMIT 1000
