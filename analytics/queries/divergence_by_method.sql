-- question: Which methods differ between primary and shadow, and how often?
-- grain: one row per network, method and shadow
-- param from DateTime64(3) = now-24h: start of the range, included; whole minutes
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column method String: JSON-RPC method
-- column shadow_upstream String: the shadow
-- column n UInt64 [pairs]: judged pairs
-- column identical UInt64 [pairs]: identical by bytes or value
-- column masked UInt64 [pairs]: identical once masked members are left out
-- column tolerated UInt64 [pairs]: differ only in ways that are tolerated
-- column mismatch UInt64 [pairs]: differ
-- column no_verdict UInt64 [pairs]: error, missing, undecided or incomparable
-- column final_mismatch UInt64 [pairs]: differ on finalised blocks
-- column mismatch_ratio Nullable(Float64) [0 to 1]: mismatch by the pairs that have a verdict; NULL where none has
SELECT
    network,
    method,
    shadow_upstream,
    sum(d.n) AS n,
    sumIf(d.n, outcome = 'identical') AS identical,
    sumIf(d.n, outcome = 'identical_masked') AS masked,
    sumIf(d.n, outcome = 'tolerated') AS tolerated,
    sumIf(d.n, outcome = 'mismatch') AS mismatch,
    sumIf(d.n, outcome IN ('error', 'missing', 'undecided', 'incomparable')) AS no_verdict,
    sumIf(d.n, outcome = 'mismatch' AND finality = 'finalized') AS final_mismatch,
    round(mismatch / nullIf(sum(d.n) - no_verdict, 0), 6) AS mismatch_ratio
FROM gnomon.divergence_parts AS d
WHERE minute >= toStartOfMinute({from:DateTime64(3)}) AND minute < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY network, method, shadow_upstream
ORDER BY mismatch DESC, n DESC, network, method, shadow_upstream
LIMIT 1000
