-- question: What did the paid fallbacks save, and at what price?
-- grain: one row per network, vendor, account and cause
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column vendor String: the company
-- column account String: the account
-- column cause String: why the request left the primary
-- column otherwise String: what the client would have got: error, empty, or same (the fallback was only faster, or first in the order)
-- column n_saved UInt64 [requests]: answered by the fallback; where the client would have got an empty answer, with data
-- column n_lost UInt64 [requests]: the fallback was asked, and the client still got an error
-- column usd Nullable(Decimal(38, 12)) [USD]: what the fallback's calls for these requests cost; NULL = unpriced
-- column usd_per_saved Nullable(Float64) [USD]: for one answered request
-- column example_request_id String: the last of them
SELECT
    c.network AS network,
    c.vendor AS vendor,
    c.account AS account,
    c.cause AS cause,
    multiIf(c.cause IN ('empty_at_head', 'beyond_head'), 'empty', c.cause IN ('', 'hedge', 'policy_order'), 'same', 'error') AS otherwise,
    countIf(r.outcome IN ('result', 'verdict') AND r.upstream = c.upstream AND (otherwise != 'empty' OR c.has_data)) AS n_saved,
    countIf(r.outcome = 'error') AS n_lost,
    sum(c.usd) AS usd,
    round(toFloat64(usd) / nullIf(n_saved, 0), 12) AS usd_per_saved,
    argMax(c.request_id, r.at) AS example_request_id
FROM
(
    SELECT
        request_id,
        network,
        upstream,
        any(a.vendor) AS vendor,
        any(a.account) AS account,
        argMin(a.cause, a.at) AS cause,
        max(a.outcome IN ('result', 'verdict') AND NOT a.is_empty) AS has_data,
        sum(a.usd) AS usd
    FROM gnomon.attempts AS a
    WHERE tier = 'fallback' AND kind IN ('client', 'retry', 'hedge')
        AND a.at >= {from:DateTime64(3)} - INTERVAL 1 MINUTE AND a.at < {to:DateTime64(3)}
        AND ({network:String} = '' OR network = {network:String})
    GROUP BY request_id, network, upstream
) AS c
INNER JOIN
(
    SELECT at, request_id, outcome, upstream
    FROM gnomon.requests
    WHERE n_attempts > 0
        AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
        AND ({network:String} = '' OR network = {network:String})
) AS r ON r.request_id = c.request_id
GROUP BY network, vendor, account, cause, otherwise
ORDER BY usd DESC NULLS LAST, n_saved DESC, network, vendor, account, cause
LIMIT 1000
