-- question: What was paid on each day, and why?
-- grain: one row per day (UTC), tier, kind and cause
-- param from DateTime64(3) = now-30d: start of the range, included; whole hours
-- param to DateTime64(3) = now: end of the range, not included; the hour that it lies in counts whole
-- param network String = '': only this network; empty = all
-- param account String = '': only this account; empty = all
-- column day DateTime64(3, 'UTC') [UTC]: its beginning
-- column tier String: primary, fallback or shadow
-- column kind String: client, retry, hedge, probe, head_poll and so on
-- column cause String: why it left the primary; empty = it did not, or it is internal
-- column n UInt64 [calls]: calls to vendors
-- column n_wasted UInt64 [calls]: of them, of no use
-- column n_unpriced UInt64 [calls]: of them, without a price
-- column usd Nullable(Decimal(38, 12)) [USD]: exact; NULL = none was priced
SELECT
    toDateTime64(toStartOfDay(hour), 3, 'UTC') AS day,
    tier,
    kind,
    cause,
    sum(s.n) AS n,
    sum(s.n_wasted) AS n_wasted,
    sum(s.n_unpriced) AS n_unpriced,
    sum(s.usd) AS usd
FROM gnomon.spend_hourly AS s
WHERE vendor != ''
    AND hour >= toStartOfHour({from:DateTime64(3)}) AND hour < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
    AND ({account:String} = '' OR account = {account:String})
GROUP BY day, tier, kind, cause
ORDER BY day, tier, kind, cause
LIMIT 100000
