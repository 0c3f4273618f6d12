-- question: What do our own calls cost: head polls, chain checks, probes, settling?
-- grain: one row per network, upstream, kind and method
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column upstream String: who was called
-- column vendor String: the company; empty = an own node
-- column account String: the account
-- column kind String: head_poll, chain_check, subscription, probe or settle
-- column method String: JSON-RPC method
-- column n UInt64 [calls]: calls
-- column n_per_hour Float64 [calls/h]: between the first and the last of the range
-- column usd Nullable(Decimal(38, 12)) [USD]: exact; NULL = unpriced
-- column usd_per_month Nullable(Float64) [USD]: at that rate, for 30 days
-- column share_ratio Nullable(Float64) [0 to 1]: of all that the upstream cost; NULL where that is nothing
SELECT
    network,
    upstream,
    any(o.vendor) AS vendor,
    any(o.account) AS account,
    kind,
    method,
    sum(o.n) AS n,
    round(n / any(o.hours), 3) AS n_per_hour,
    sum(o.usd) AS usd,
    round(toFloat64(usd) / any(o.hours) * 720, 6) AS usd_per_month,
    round(toFloat64(usd) / nullIf(toFloat64(any(o.all_usd)), 0), 6) AS share_ratio
FROM
(
    SELECT
        network,
        upstream,
        vendor,
        account,
        kind,
        method,
        request_id = '' AS is_own,
        count() AS n,
        sum(a.usd) AS usd,
        sum(sum(a.usd)) OVER (PARTITION BY network, upstream) AS all_usd,
        greatest(dateDiff('second', min(min(a.at)) OVER (), max(max(a.at)) OVER ()) / 3600, 1 / 60) AS hours
    FROM gnomon.attempts AS a
    WHERE a.at >= {from:DateTime64(3)} AND a.at < {to:DateTime64(3)}
        AND ({network:String} = '' OR network = {network:String})
    GROUP BY network, upstream, vendor, account, kind, method, is_own
) AS o
WHERE is_own
GROUP BY network, upstream, kind, method
ORDER BY usd DESC NULLS LAST, n DESC, network, upstream, kind, method
LIMIT 1000
