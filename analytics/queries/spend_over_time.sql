-- question: What was spent hour by hour?
-- grain: one row per hour
-- param from DateTime64(3) = now-7d: start of the range, included; whole hours
-- param to DateTime64(3) = now: end of the range, not included; the hour that it lies in counts whole
-- param network String = '': only this network; empty = all
-- column hour DateTime64(3, 'UTC') [UTC]: the hour; hours without a call are left out
-- column n UInt64 [calls]: calls to vendors
-- column n_wasted UInt64 [calls]: paid and of no use
-- column usd Nullable(Decimal(38, 12)) [USD]: exact; NULL = none was priced
-- column usd_fallback Nullable(Decimal(38, 12)) [USD]: of it at paid fallbacks
-- column usd_own Nullable(Decimal(38, 12)) [USD]: of it for our own calls
-- column usd_shadow Nullable(Decimal(38, 12)) [USD]: of it for mirrored calls
-- column n_unpriced UInt64 [calls]: calls in no sum, for nobody knows their price
SELECT
    hour,
    sum(s.n) AS n,
    sum(s.n_wasted) AS n_wasted,
    sum(s.usd) AS usd,
    sumIf(s.usd, tier = 'fallback') AS usd_fallback,
    sumIf(s.usd, kind IN ('probe', 'head_poll', 'chain_check', 'subscription', 'settle')) AS usd_own,
    sumIf(s.usd, kind = 'shadow') AS usd_shadow,
    sum(s.n_unpriced) AS n_unpriced
FROM gnomon.spend_hourly AS s
WHERE vendor != ''
    AND hour >= toStartOfHour({from:DateTime64(3)}) AND hour < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY hour
ORDER BY hour
LIMIT 10000
