-- question: How does each upstream answer?
-- grain: one row per network, upstream and tier; calls for clients, probes and shadows
-- param from DateTime64(3) = now-1h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column upstream String: who was called
-- column tier String: primary, fallback or shadow
-- column n UInt64 [calls]: calls
-- column failed_ratio Float64 [0 to 1]: error, timeout or transport
-- column empty_ratio Float64 [0 to 1]: empty answers
-- column cancelled UInt64 [calls]: given up, because another answer came first or the client left
-- column p50_us UInt32 [us]: half of the calls were as fast
-- column p99_us UInt32 [us]: 99 in 100 were as fast
SELECT
    network,
    upstream,
    tier,
    count() AS n,
    round(countIf(outcome IN ('error', 'timeout', 'transport')) / n, 6) AS failed_ratio,
    round(countIf(is_empty) / n, 6) AS empty_ratio,
    countIf(outcome = 'cancelled') AS cancelled,
    toUInt32(quantileExactIf(0.5)(duration_us, outcome != 'cancelled')) AS p50_us,
    toUInt32(quantileExactIf(0.99)(duration_us, outcome != 'cancelled')) AS p99_us
FROM gnomon.attempts
WHERE kind IN ('client', 'retry', 'hedge', 'probe', 'shadow')
    AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY network, upstream, tier
ORDER BY failed_ratio DESC, network, upstream, tier
LIMIT 1000
