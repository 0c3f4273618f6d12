-- question: Do the clocks agree?
-- grain: one row per clock that the alert service compares with its own
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- column subject String: whose clock
-- column seconds Float64 [s]: how far it was ahead the last time; below 0 = behind
-- column worst_seconds Float64 [s]: the greatest difference of the range, ahead or behind
-- column last_at DateTime64(3, 'UTC') [UTC]: when they were compared last
-- column n UInt64 [samples]: comparisons
SELECT
    subject,
    argMax(g.value, g.at) AS seconds,
    argMax(g.value, abs(g.value)) AS worst_seconds,
    max(g.at) AS last_at,
    count() AS n
FROM gnomon.gauges AS g
WHERE name = 'clock_skew_seconds'
    AND g.at >= {from:DateTime64(3)} AND g.at < {to:DateTime64(3)}
GROUP BY subject
ORDER BY abs(worst_seconds) DESC, subject
LIMIT 1000
