-- question: What do a million client requests cost?
-- grain: one row per network
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column n_requests UInt64 [requests]: client requests, those left out that never were one (invalid, rejected)
-- column usd Nullable(Decimal(38, 12)) [USD]: everything that the network's calls cost; NULL = unpriced
-- column usd_per_million Nullable(Float64) [USD]: for 1,000,000 requests
-- column usd_clients_per_million Nullable(Float64) [USD]: of it for the calls that clients' requests caused
-- column usd_own_per_million Nullable(Float64) [USD]: of it for our own calls (head polls, chain checks, probes, settling)
-- column usd_shadow_per_million Nullable(Float64) [USD]: of it for mirrored calls
-- column usd_wasted_per_million Nullable(Float64) [USD]: of it for calls of no use
-- column n_unpriced UInt64 [calls]: calls in no sum, for nobody knows their price
SELECT
    a.network AS network,
    ifNull(r.n, 0) AS n_requests,
    a.usd AS usd,
    round(toFloat64(a.usd) / nullIf(n_requests, 0) * 1000000, 6) AS usd_per_million,
    round(toFloat64(ifNull(a.usd_clients, 0)) / nullIf(n_requests, 0) * 1000000, 6) AS usd_clients_per_million,
    round(toFloat64(ifNull(a.usd_own, 0)) / nullIf(n_requests, 0) * 1000000, 6) AS usd_own_per_million,
    round(toFloat64(ifNull(a.usd_shadow, 0)) / nullIf(n_requests, 0) * 1000000, 6) AS usd_shadow_per_million,
    round(toFloat64(ifNull(a.usd_wasted, 0)) / nullIf(n_requests, 0) * 1000000, 6) AS usd_wasted_per_million,
    a.n_unpriced AS n_unpriced
FROM
(
    SELECT
        network,
        sum(t.usd) AS usd,
        sumIf(t.usd, kind IN ('client', 'retry', 'hedge')) AS usd_clients,
        sumIf(t.usd, request_id = '') AS usd_own,
        sumIf(t.usd, kind = 'shadow') AS usd_shadow,
        sumIf(t.usd, is_wasted) AS usd_wasted,
        countIf(vendor != '' AND t.usd IS NULL) AS n_unpriced
    FROM gnomon.attempts AS t
    WHERE at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
        AND ({network:String} = '' OR network = {network:String})
    GROUP BY network
) AS a
LEFT JOIN
(
    SELECT network, count() AS n
    FROM gnomon.requests
    WHERE outcome NOT IN ('invalid', 'rejected')
        AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
        AND ({network:String} = '' OR network = {network:String})
    GROUP BY network
) AS r ON r.network = a.network
ORDER BY usd_per_million DESC NULLS LAST, network
LIMIT 1000
