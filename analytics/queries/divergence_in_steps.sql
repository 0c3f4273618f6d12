-- question: How often did shadows differ on final data, step by step?
-- grain: one row per step, network and shadow with a pair
-- param from DateTime64(3) = now-3h: start of the range, included; whole minutes
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param step UInt32 = 300: seconds of a step, at least 1; steps are counted from the start of the range
-- column step UInt64: number of the step; 0 begins at `from`
-- column network String: chain
-- column shadow_upstream String: the shadow
-- column n UInt64 [pairs]: pairs on final data with a verdict
-- column mismatch UInt64 [pairs]: of them, those that differ
SELECT
    toUInt64(intDiv(dateDiff('second', toStartOfMinute({from:DateTime64(3)}), minute), greatest({step:UInt32}, 1))) AS step,
    network,
    shadow_upstream,
    sum(d.n) AS n,
    sumIf(d.n, outcome = 'mismatch') AS mismatch
FROM gnomon.divergence_parts AS d
WHERE minute >= toStartOfMinute({from:DateTime64(3)}) AND minute < {to:DateTime64(3)}
    AND finality = 'finalized'
    AND outcome IN ('identical', 'identical_masked', 'tolerated', 'mismatch')
    AND ({network:String} = '' OR network = {network:String})
GROUP BY step, network, shadow_upstream
ORDER BY step, network, shadow_upstream
LIMIT 100000
