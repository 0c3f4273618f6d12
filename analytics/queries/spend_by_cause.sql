-- question: What did paid calls cost, and why was each of them made?
-- grain: one row per network, vendor, account, tier, kind and cause
-- param from DateTime64(3) = now-24h: start of the range, included; whole hours
-- param to DateTime64(3) = now: end of the range, not included; the hour that it lies in counts whole
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column vendor String: the company
-- column account String: the account, empty = none named
-- column tier String: primary, fallback or shadow
-- column kind String: client, retry, hedge, probe, head_poll and so on
-- column cause String: why it left the primary; empty = it did not, or it is internal
-- column n UInt64 [calls]: calls
-- column n_wasted UInt64 [calls]: paid and of no use
-- column units Nullable(Decimal(38, 12)) [units]: units of the vendor; NULL = not known
-- column usd Nullable(Decimal(38, 12)) [USD]: exact; NULL = none was priced
-- column n_unpriced UInt64 [calls]: of them, in no sum, for nobody knows their price
SELECT
    network,
    vendor,
    account,
    tier,
    kind,
    cause,
    sum(s.n) AS n,
    sum(s.n_wasted) AS n_wasted,
    sum(s.units) AS units,
    sum(s.usd) AS usd,
    sum(s.n_unpriced) AS n_unpriced
FROM gnomon.spend_hourly AS s
WHERE vendor != ''
    AND hour >= toStartOfHour({from:DateTime64(3)}) AND hour < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY network, vendor, account, tier, kind, cause
ORDER BY usd DESC NULLS LAST, n DESC, network, vendor, account, tier, kind, cause
LIMIT 1000
