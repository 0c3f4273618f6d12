-- question: What did units cost, and how sure is that?
-- grain: one row per vendor and account
-- param from DateTime64(3) = now-30d: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param account String = '': only this account; empty = all
-- column vendor String: the company
-- column account String: the account, empty = none named
-- column n UInt64 [calls]: calls
-- column n_unpriced UInt64 [calls]: of them, in no sum, for nobody knows their price
-- column n_estimates UInt64 [calls]: of them, priced by a choice, for the vendor's list does not say it for sure
-- column units Nullable(Decimal(38, 12)) [units]: units of the vendor, of the priced calls
-- column usd Nullable(Decimal(38, 12)) [USD]: what they cost
-- column usd_per_million_units Nullable(Float64) [USD]: the one by the other
SELECT
    vendor,
    account,
    count() AS n,
    countIf(isNull(a.usd)) AS n_unpriced,
    countIf(is_estimate AND isNotNull(a.usd)) AS n_estimates,
    sumIf(a.units, isNotNull(a.usd)) AS units,
    sum(a.usd) AS usd,
    round(toFloat64(usd) / nullIf(toFloat64(units), 0) * 1000000, 6) AS usd_per_million_units
FROM gnomon.attempts AS a
WHERE vendor != ''
    AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
    AND ({account:String} = '' OR account = {account:String})
GROUP BY vendor, account
ORDER BY usd DESC NULLS LAST, vendor, account
LIMIT 1000
