-- question: How does each upstream answer?
-- grain: one row per network, upstream and tier; calls for clients, probes and shadows
-- param from DateTime64(3) = now-1h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column upstream String: who was called
-- column tier String: primary, fallback or shadow
-- column n UInt64 [calls]: calls
-- column n_failed UInt64 [calls]: of them, error, timeout or transport
-- column n_empty UInt64 [calls]: of them, with an empty answer
-- column failed_ratio Float64 [0 to 1]: n_failed by n
-- column failed_low Float64 [0 to 1]: lower end of its 95 % interval (Wilson)
-- column failed_high Float64 [0 to 1]: upper end
-- column empty_ratio Float64 [0 to 1]: n_empty by n
-- column empty_low Float64 [0 to 1]: lower end of its 95 % interval (Wilson)
-- column empty_high Float64 [0 to 1]: upper end
-- column cancelled UInt64 [calls]: given up, because another answer came first or the client left
-- column p50_us UInt32 [us]: half of the calls were as fast
-- column p99_us UInt32 [us]: 99 in 100 were as fast
WITH
    1.959963984540054 AS z,
    (k, n) -> if(n = 0, NULL, if(k = 0, 0, greatest(0, (k / n + z * z / n / 2 - z * sqrt(k / n * (1 - k / n) / n + z * z / n / n / 4)) / (1 + z * z / n)))) AS low,
    (k, n) -> if(n = 0, NULL, if(k = n, 1, least(1, (k / n + z * z / n / 2 + z * sqrt(k / n * (1 - k / n) / n + z * z / n / n / 4)) / (1 + z * z / n)))) AS high
SELECT
    network,
    upstream,
    tier,
    count() AS n,
    countIf(outcome IN ('error', 'timeout', 'transport')) AS n_failed,
    countIf(is_empty) AS n_empty,
    round(n_failed / n, 6) AS failed_ratio,
    assumeNotNull(low(n_failed, n)) AS failed_low,
    assumeNotNull(high(n_failed, n)) AS failed_high,
    round(n_empty / n, 6) AS empty_ratio,
    assumeNotNull(low(n_empty, n)) AS empty_low,
    assumeNotNull(high(n_empty, n)) AS empty_high,
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
