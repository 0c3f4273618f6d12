-- question: Which events of which proxy process never arrived?
-- grain: one row per gap in the numbers of a process
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now-5m: end of the range, not included; what is younger may be on its way
-- column proc String: the process (a worker's life)
-- column first_missing UInt64: number of the first event that is not there
-- column last_missing Int64: number of the last one
-- column n Int64 [events]: how many are not there
-- column before_at DateTime64(3, 'UTC') [UTC]: when the event before them happened
-- column after_at DateTime64(3, 'UTC') [UTC]: when the one behind them happened
SELECT
    proc,
    previous + 1 AS first_missing,
    seq - 1 AS last_missing,
    seq - previous - 1 AS n,
    previous_at AS before_at,
    at AS after_at
FROM
(
    SELECT
        proc,
        seq,
        at,
        lagInFrame(seq, 1, seq) OVER numbers AS previous,
        lagInFrame(at, 1, at) OVER numbers AS previous_at
    FROM gnomon.events
    WHERE proc != '' AND at >= {from:DateTime64(3)} - INTERVAL 60 SECOND AND at < {to:DateTime64(3)} + INTERVAL 60 SECOND
    WINDOW numbers AS (PARTITION BY proc ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
)
WHERE seq > previous + 1 AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
ORDER BY after_at, proc, first_missing
LIMIT 10000
