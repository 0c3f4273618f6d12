-- question: Which groups of paid calls cost most?
-- grain: one row per network, method, tier, kind, cause and upstream
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param account String = '': only this account; empty = all
-- param limit UInt32 = 20: most rows
-- column network String: chain
-- column method String: JSON-RPC method
-- column tier String: primary, fallback or shadow
-- column kind String: client, retry, hedge, probe, head_poll and so on
-- column cause String: why it left the primary; empty = it did not, or it is internal
-- column upstream String: who was called
-- column n UInt64 [calls]: calls
-- column n_empty UInt64 [calls]: of them, with an empty answer
-- column n_wasted UInt64 [calls]: of them, of no use
-- column n_unpriced UInt64 [calls]: of them, without a price
-- column usd Nullable(Decimal(38, 12)) [USD]: exact; NULL = none was priced
-- column example_request_id String: the last request of it; empty = our own calls
SELECT
    network,
    method,
    tier,
    kind,
    cause,
    upstream,
    count() AS n,
    countIf(is_empty) AS n_empty,
    countIf(is_wasted) AS n_wasted,
    countIf(isNull(a.usd)) AS n_unpriced,
    sum(a.usd) AS usd,
    argMax(request_id, at) AS example_request_id
FROM gnomon.attempts AS a
WHERE vendor != ''
    AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
    AND ({account:String} = '' OR account = {account:String})
GROUP BY network, method, tier, kind, cause, upstream
ORDER BY usd DESC NULLS LAST, n DESC, network, method, tier, kind, cause, upstream
LIMIT {limit:UInt32}
