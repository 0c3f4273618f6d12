-- question: How did one upstream answer, step by step?
-- grain: one row per step with a call; calls for clients, probes and shadows
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String: chain
-- param upstream String: who was called
-- param step UInt32 = 300: seconds of a step, at least 1; steps are counted from the start of the range
-- column step UInt64: number of the step; 0 begins at `from`
-- column at DateTime64(3, 'UTC') [UTC]: when it begins
-- column n UInt64 [calls]: calls
-- column n_failed UInt64 [calls]: error, timeout or transport
-- column n_empty UInt64 [calls]: empty answers
-- column p50_us UInt32 [us]: half of the calls were as fast
-- column p99_us UInt32 [us]: 99 in 100 were as fast
SELECT
    toUInt64(intDiv(dateDiff('second', {from:DateTime64(3)}, a.at), greatest({step:UInt32}, 1))) AS step,
    toDateTime64({from:DateTime64(3)} + toIntervalSecond(any(step) * greatest({step:UInt32}, 1)), 3, 'UTC') AS at,
    count() AS n,
    countIf(outcome IN ('error', 'timeout', 'transport')) AS n_failed,
    countIf(is_empty) AS n_empty,
    toUInt32(quantileTDigestIf(0.5)(duration_us, outcome != 'cancelled')) AS p50_us,
    toUInt32(quantileTDigestIf(0.99)(duration_us, outcome != 'cancelled')) AS p99_us
FROM gnomon.attempts AS a
WHERE network = {network:String} AND upstream = {upstream:String}
    AND kind IN ('client', 'retry', 'hedge', 'probe', 'shadow')
    AND a.at >= {from:DateTime64(3)} AND a.at < {to:DateTime64(3)}
GROUP BY step
ORDER BY step
LIMIT 10000
