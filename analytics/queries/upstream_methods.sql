-- question: How does each upstream answer each method?
-- grain: one row per network, upstream, tier and method; calls for clients, probes and shadows
-- param from DateTime64(3) = now-1h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param upstream String = '': only this upstream; empty = all
-- column network String: chain
-- column upstream String: who was called
-- column tier String: primary, fallback or shadow
-- column method String: JSON-RPC method
-- column n UInt64 [calls]: calls
-- column n_failed UInt64 [calls]: error, timeout or transport
-- column n_empty UInt64 [calls]: empty answers
-- column n_cancelled UInt64 [calls]: given up, because another answer came first or the client left
-- column n_wasted UInt64 [calls]: paid and of no use
-- column p50_us UInt32 [us]: half of the calls were as fast
-- column p99_us UInt32 [us]: 99 in 100 were as fast
-- column usd Nullable(Decimal(38, 12)) [USD]: exact; NULL = unpriced
SELECT
    network,
    upstream,
    tier,
    method,
    count() AS n,
    countIf(outcome IN ('error', 'timeout', 'transport')) AS n_failed,
    countIf(is_empty) AS n_empty,
    countIf(outcome = 'cancelled') AS n_cancelled,
    countIf(is_wasted) AS n_wasted,
    toUInt32(quantileExactIf(0.5)(duration_us, outcome != 'cancelled')) AS p50_us,
    toUInt32(quantileExactIf(0.99)(duration_us, outcome != 'cancelled')) AS p99_us,
    sum(a.usd) AS usd
FROM gnomon.attempts AS a
WHERE kind IN ('client', 'retry', 'hedge', 'probe', 'shadow')
    AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
    AND ({upstream:String} = '' OR upstream = {upstream:String})
GROUP BY network, upstream, tier, method
ORDER BY n DESC, network, upstream, tier, method
LIMIT 1000
