-- question: Why did spend rise between these two hours?
-- grain: one row per network, upstream, kind, cause and method; what explains most of the difference comes first
-- param before DateTime64(3) = now-25h: an instant in the earlier hour
-- param after DateTime64(3) = now-1h: an instant in the later hour
-- param hours UInt32 = 1: so many hours from each of them on
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column upstream String: who was called
-- column kind String: client, retry, hedge, probe, head_poll and so on
-- column cause String: why it left the primary; empty = it did not, or it is internal
-- column method String: JSON-RPC method
-- column usd_before Decimal(38, 12) [USD]: what it cost in the earlier hour
-- column usd_after Decimal(38, 12) [USD]: what it cost in the later one
-- column usd_change Decimal(38, 12) [USD]: the difference; exact
-- column share_ratio Nullable(Float64): of the whole difference; they add up to 1, and what went the other way is below 0
-- column running_ratio Nullable(Float64): the same, added up from the first row on
-- column n_before UInt64 [calls]: calls in the earlier hour
-- column n_after UInt64 [calls]: calls in the later one
-- column usd_by_calls Float64 [USD]: of the change, because there were more or fewer calls
-- column usd_by_price Float64 [USD]: of the change, because a call cost more or less
SELECT
    network,
    upstream,
    kind,
    cause,
    method,
    usd_before,
    usd_after,
    usd_change,
    round(toFloat64(usd_change) / nullIf(total, 0), 6) AS share_ratio,
    round(toFloat64(sum(t.usd_change) OVER (ORDER BY weight DESC, network, upstream, kind, cause, method)) / nullIf(total, 0), 6)
        AS running_ratio,
    n_before,
    n_after,
    round((toInt64(n_after) - toInt64(n_before))
        * if(n_before > 0, toFloat64(usd_before) / n_before, toFloat64(usd_after) / greatest(n_after, 1)), 12) AS usd_by_calls,
    round(toFloat64(usd_change) - usd_by_calls, 12) AS usd_by_price
FROM
(
    SELECT
        network,
        upstream,
        kind,
        cause,
        method,
        usd_before,
        usd_after,
        g.usd_change AS usd_change,
        n_before,
        n_after,
        toFloat64(sum(g.usd_change) OVER ()) AS total,
        g.usd_change * if(total < 0, -1, 1) AS weight
    FROM
    (
        SELECT
            network,
            upstream,
            kind,
            cause,
            method,
            ifNull(sumIf(s.usd, s.is_before), 0) AS usd_before,
            ifNull(sumIf(s.usd, NOT s.is_before), 0) AS usd_after,
            usd_after - usd_before AS usd_change,
            sumIf(s.n, s.is_before) AS n_before,
            sumIf(s.n, NOT s.is_before) AS n_after
        FROM
        (
            SELECT
                network,
                upstream,
                kind,
                cause,
                method,
                n,
                usd,
                hour >= toStartOfHour({before:DateTime64(3)})
                    AND hour < toStartOfHour({before:DateTime64(3)}) + toIntervalHour({hours:UInt32}) AS is_before
            FROM gnomon.spend_hourly
            WHERE vendor != ''
                AND (hour >= toStartOfHour({before:DateTime64(3)})
                        AND hour < toStartOfHour({before:DateTime64(3)}) + toIntervalHour({hours:UInt32})
                    OR hour >= toStartOfHour({after:DateTime64(3)})
                        AND hour < toStartOfHour({after:DateTime64(3)}) + toIntervalHour({hours:UInt32}))
                AND ({network:String} = '' OR network = {network:String})
        ) AS s
        GROUP BY network, upstream, kind, cause, method
        HAVING usd_before != 0 OR usd_after != 0
    ) AS g
) AS t
ORDER BY weight DESC, network, upstream, kind, cause, method
LIMIT 1000
