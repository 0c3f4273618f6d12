-- question: Which methods cost the most?
-- grain: one row per network, vendor and method
-- param from DateTime64(3) = now-24h: start of the range, included; whole hours
-- param to DateTime64(3) = now: end of the range, not included; the hour that it lies in counts whole
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column vendor String: the company
-- column method String: JSON-RPC method
-- column n UInt64 [calls]: calls
-- column n_wasted UInt64 [calls]: paid and of no use
-- column units Nullable(Decimal(38, 12)) [units]: units of the vendor; NULL = not known
-- column usd Nullable(Decimal(38, 12)) [USD]: exact; NULL = none was priced
-- column usd_per_thousand Nullable(Float64) [USD]: for 1,000 calls
-- column share_ratio Nullable(Float64) [0 to 1]: of all that is in the answer
-- column n_unpriced UInt64 [calls]: of them, in no sum, for nobody knows their price
SELECT
    network,
    vendor,
    method,
    sum(s.n) AS n,
    sum(s.n_wasted) AS n_wasted,
    sum(s.units) AS units,
    sum(s.usd) AS usd,
    round(toFloat64(usd) / n * 1000, 6) AS usd_per_thousand,
    round(toFloat64(usd) / nullIf(toFloat64(sum(usd) OVER ()), 0), 6) AS share_ratio,
    sum(s.n_unpriced) AS n_unpriced
FROM gnomon.spend_hourly AS s
WHERE vendor != ''
    AND hour >= toStartOfHour({from:DateTime64(3)}) AND hour < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY network, vendor, method
ORDER BY usd DESC NULLS LAST, n DESC, network, vendor, method
LIMIT 1000
