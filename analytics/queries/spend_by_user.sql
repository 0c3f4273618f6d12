-- question: Whose requests cost what?
-- grain: one row per project, user and network
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column project String: project
-- column user String: label of the client's secret; empty = none
-- column network String: chain
-- column n_requests UInt64 [requests]: requests that reached an upstream
-- column n_paid UInt64 [requests]: of them, with at least one call that costs money or is unpriced
-- column n_calls UInt64 [calls]: calls to upstreams, mirrored ones included
-- column units Nullable(Decimal(38, 12)) [units]: units, vendors added up: compare users, not vendors, by it
-- column usd Nullable(Decimal(38, 12)) [USD]: exact; NULL = none was priced
-- column usd_shadow Nullable(Decimal(38, 12)) [USD]: of it for mirrored calls, which no user asked for
-- column usd_per_thousand Nullable(Float64) [USD]: for 1,000 requests
-- column n_unpriced UInt64 [calls]: calls in no sum, for nobody knows their price
SELECT
    project,
    user,
    network,
    uniqExact(request_id) AS n_requests,
    uniqExactIf(request_id, vendor != '' AND (a.usd IS NULL OR a.usd > 0) AND kind != 'shadow') AS n_paid,
    count() AS n_calls,
    sum(a.units) AS units,
    sum(a.usd) AS usd,
    sumIf(a.usd, kind = 'shadow') AS usd_shadow,
    round(toFloat64(usd) / n_requests * 1000, 6) AS usd_per_thousand,
    countIf(vendor != '' AND a.usd IS NULL) AS n_unpriced
FROM gnomon.attempts AS a
WHERE request_id != ''
    AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY project, user, network
ORDER BY usd DESC NULLS LAST, n_requests DESC, project, user, network
LIMIT 1000
