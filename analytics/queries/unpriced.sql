-- question: Which calls have no price?
-- grain: one row per network, vendor, upstream and method
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column vendor String: the company, as the upstream names it
-- column account String: the account
-- column upstream String: who was called
-- column method String: JSON-RPC method
-- column n UInt64 [calls]: calls in no sum
-- column units Nullable(Decimal(38, 12)) [units]: their units, where the book has units but no price; NULL = neither
-- column first_at DateTime64(3, 'UTC') [UTC]: the first of the range
-- column last_at DateTime64(3, 'UTC') [UTC]: the last
SELECT
    network,
    vendor,
    account,
    upstream,
    method,
    count() AS n,
    sum(a.units) AS units,
    min(a.at) AS first_at,
    max(a.at) AS last_at
FROM gnomon.attempts AS a
WHERE vendor != '' AND usd IS NULL
    AND a.at >= {from:DateTime64(3)} AND a.at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY network, vendor, account, upstream, method
ORDER BY n DESC, network, vendor, account, upstream, method
LIMIT 1000
