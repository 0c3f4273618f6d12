-- question: How many answers of each method were compared with each shadow?
-- grain: one row per network, method and shadow
-- param from DateTime64(3) = now-7d: start of the range, included; whole minutes
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param method String = '': only this method; empty = all
-- param shadow String = '': only this shadow; empty = all
-- param finality String = 'finalized': only pairs of this finality; empty = all
-- column network String: chain
-- column method String: JSON-RPC method
-- column shadow_upstream String: the shadow
-- column n_judged UInt64 [pairs]: pairs with a verdict: identical, masked, tolerated or mismatch
-- column masked UInt64 [pairs]: of them, identical only once masked members are left out
-- column tolerated UInt64 [pairs]: of them, forgiven
-- column mismatch UInt64 [pairs]: of them, those that differ
SELECT
    network,
    method,
    shadow_upstream,
    sumIf(d.n, outcome IN ('identical', 'identical_masked', 'tolerated', 'mismatch')) AS n_judged,
    sumIf(d.n, outcome = 'identical_masked') AS masked,
    sumIf(d.n, outcome = 'tolerated') AS tolerated,
    sumIf(d.n, outcome = 'mismatch') AS mismatch
FROM gnomon.divergence_parts AS d
WHERE minute >= toStartOfMinute({from:DateTime64(3)}) AND minute < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
    AND ({method:String} = '' OR method = {method:String})
    AND ({shadow:String} = '' OR shadow_upstream = {shadow:String})
    AND ({finality:String} = '' OR finality = {finality:String})
GROUP BY network, method, shadow_upstream
HAVING n_judged > 0
ORDER BY network, method, shadow_upstream
LIMIT 10000
