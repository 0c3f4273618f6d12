-- question: Who learns of a block first, and how long after do others?
-- grain: one row per network and upstream; blocks that two upstreams or more have shown
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column upstream String: who learns
-- column n UInt64 [blocks]: blocks that it has shown
-- column n_first UInt64 [blocks]: of them, before all others
-- column p50_seconds Float64 [s]: half of the blocks came no later after the first
-- column p99_seconds Float64 [s]: 99 in 100
SELECT
    network,
    upstream,
    count() AS n,
    countIf(seen_at = first_at) AS n_first,
    round(quantileTDigest(0.5)(dateDiff('millisecond', first_at, seen_at)) / 1000, 3) AS p50_seconds,
    round(quantileTDigest(0.99)(dateDiff('millisecond', first_at, seen_at)) / 1000, 3) AS p99_seconds
FROM
(
    SELECT
        network,
        upstream,
        number,
        seen_at,
        min(seen_at) OVER (PARTITION BY network, number) AS first_at,
        count() OVER (PARTITION BY network, number) AS n_seen
    FROM
    (
        SELECT network, upstream, number, min(h.at) AS seen_at
        FROM gnomon.heads AS h
        WHERE axis = 'latest' AND h.at >= {from:DateTime64(3)} AND h.at < {to:DateTime64(3)}
            AND ({network:String} = '' OR network = {network:String})
        GROUP BY network, upstream, number
    )
)
WHERE n_seen > 1
GROUP BY network, upstream
ORDER BY network, p50_seconds, upstream
LIMIT 1000
