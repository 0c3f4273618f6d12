-- question: Which paid calls were of no use?
-- grain: one row per network, vendor, account, method and reason
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column vendor String: the company
-- column account String: the account
-- column upstream String: who was called
-- column method String: JSON-RPC method
-- column reason String: empty_beyond_head, lost_race (cancelled) or duplicate
-- column n UInt64 [calls]: calls
-- column usd Nullable(Decimal(38, 12)) [USD]: what they cost; NULL = unpriced
-- column example_request_id String: the last request
SELECT
    network,
    vendor,
    account,
    upstream,
    method,
    multiIf(is_cancelled OR outcome = 'cancelled', 'lost_race', is_duplicate, 'duplicate', 'empty_beyond_head') AS reason,
    count() AS n,
    sum(a.usd) AS usd,
    argMax(request_id, at) AS example_request_id
FROM gnomon.attempts AS a
WHERE is_wasted
    AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY network, vendor, account, upstream, method, reason
ORDER BY usd DESC NULLS LAST, n DESC, network, vendor, account, upstream, method, reason
LIMIT 1000
