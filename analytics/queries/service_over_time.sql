-- question: How were clients served, step by step?
-- grain: one row per step with a request; all networks together
-- param from DateTime64(3) = now-3h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param step UInt32 = 60: seconds of a step, at least 1; steps are counted from the start of the range
-- column step UInt64: number of the step; 0 begins at `from`
-- column n UInt64 [requests]: requests that ended in it
-- column n_failed UInt64 [requests]: of them, without an answer: every upstream failed, or none could be asked
-- column n_paid UInt64 [requests]: of them, served by a paid fallback
-- column p50_us UInt32 [us]: half of the clients waited no longer
-- column p99_us UInt32 [us]: 99 in 100 waited no longer
SELECT
    toUInt64(intDiv(dateDiff('second', {from:DateTime64(3)}, at), greatest({step:UInt32}, 1))) AS step,
    count() AS n,
    countIf(outcome = 'error') AS n_failed,
    countIf(tier = 'fallback') AS n_paid,
    toUInt32(quantileTDigest(0.5)(duration_us)) AS p50_us,
    toUInt32(quantileTDigest(0.99)(duration_us)) AS p99_us
FROM gnomon.requests
WHERE at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
    AND outcome NOT IN ('invalid', 'rejected', 'cancelled')
GROUP BY step
ORDER BY step
LIMIT 10000
