-- question: What was spent, step by step?
-- grain: one row per step with a call to a vendor
-- param from DateTime64(3) = now-3h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param step UInt32 = 60: seconds of a step, at least 1; steps are counted from the start of the range
-- column step UInt64: number of the step; 0 begins at `from`
-- column n UInt64 [calls]: calls to vendors
-- column usd Nullable(Decimal(38, 12)) [USD]: exact; NULL = none was priced
SELECT
    toUInt64(intDiv(dateDiff('second', {from:DateTime64(3)}, at), greatest({step:UInt32}, 1))) AS step,
    count() AS n,
    sum(a.usd) AS usd
FROM gnomon.attempts AS a
WHERE vendor != ''
    AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY step
ORDER BY step
LIMIT 10000
