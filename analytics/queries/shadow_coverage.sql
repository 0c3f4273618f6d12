-- question: How much of the traffic did each shadow see, and why not the rest?
-- grain: one row per network, shadow and decision
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column upstream String: the shadow
-- column decision String: mirrored, or why not
-- column n UInt64 [requests]: requests with this decision
-- column share_ratio Float64 [0 to 1]: of all requests of this network and shadow
SELECT
    network,
    upstream,
    decision,
    count() AS n,
    round(n / sum(count()) OVER (PARTITION BY network, upstream), 6) AS share_ratio
FROM gnomon.shadow_decisions
WHERE at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY network, upstream, decision
ORDER BY network, upstream, n DESC, decision
LIMIT 1000
