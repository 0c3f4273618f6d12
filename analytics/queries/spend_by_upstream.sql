-- question: What does each upstream cost, for clients, for ourselves and for shadows?
-- grain: one row per network, upstream, vendor and account
-- param from DateTime64(3) = now-24h: start of the range, included; whole hours
-- param to DateTime64(3) = now: end of the range, not included; the hour that it lies in counts whole
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column upstream String: who was called
-- column vendor String: the company
-- column account String: the account, empty = none named
-- column tier String: primary, fallback or shadow
-- column n UInt64 [calls]: calls
-- column units Nullable(Decimal(38, 12)) [units]: units of the vendor; NULL = not known
-- column usd Nullable(Decimal(38, 12)) [USD]: exact; NULL = none was priced
-- column usd_clients Nullable(Decimal(38, 12)) [USD]: of it for clients' requests (first tries, retries, hedges)
-- column usd_own Nullable(Decimal(38, 12)) [USD]: of it for our own calls (head polls, chain checks, probes, settling)
-- column usd_shadow Nullable(Decimal(38, 12)) [USD]: of it for mirrored calls
-- column n_wasted UInt64 [calls]: paid and of no use
-- column n_unpriced UInt64 [calls]: calls in no sum, for nobody knows their price
SELECT
    network,
    upstream,
    vendor,
    account,
    any(s.tier) AS tier,
    sum(s.n) AS n,
    sum(s.units) AS units,
    sum(s.usd) AS usd,
    sumIf(s.usd, kind IN ('client', 'retry', 'hedge')) AS usd_clients,
    sumIf(s.usd, kind IN ('probe', 'head_poll', 'chain_check', 'subscription', 'settle')) AS usd_own,
    sumIf(s.usd, kind = 'shadow') AS usd_shadow,
    sum(s.n_wasted) AS n_wasted,
    sum(s.n_unpriced) AS n_unpriced
FROM gnomon.spend_hourly AS s
WHERE hour >= toStartOfHour({from:DateTime64(3)}) AND hour < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY network, upstream, vendor, account
ORDER BY usd DESC NULLS LAST, n DESC, network, upstream, vendor, account
LIMIT 1000
