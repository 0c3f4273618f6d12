-- question: How much of what was paid bought nothing, by why it was paid?
-- grain: one row per tier, kind and cause with a wasted call
-- param from DateTime64(3) = now-30d: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param account String = '': only this account; empty = all
-- column tier String: primary, fallback or shadow
-- column kind String: client, retry, hedge, probe, head_poll and so on
-- column cause String: why it left the primary
-- column n UInt64 [calls]: calls of no use
-- column usd Nullable(Decimal(38, 12)) [USD]: what they cost; NULL = unpriced
SELECT tier, kind, cause, count() AS n, sum(a.usd) AS usd
FROM gnomon.attempts AS a
WHERE is_wasted
    AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
    AND ({account:String} = '' OR account = {account:String})
GROUP BY tier, kind, cause
ORDER BY usd DESC NULLS LAST, n DESC, tier, kind, cause
LIMIT 1000
