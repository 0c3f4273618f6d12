-- question: How often does each shadow answer otherwise than the primary?
-- grain: one row per network and shadow
-- param from DateTime64(3) = now-7d: start of the range, included; whole minutes
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param finality String = 'finalized': only pairs of this finality; empty = all
-- param method String = '': only this method; empty = all
-- column network String: chain
-- column shadow_upstream String: the shadow
-- column n_judged UInt64 [pairs]: pairs with a verdict: identical, masked, tolerated or mismatch
-- column identical UInt64 [pairs]: identical by bytes or value
-- column identical_masked UInt64 [pairs]: identical once masked members are left out
-- column tolerated UInt64 [pairs]: differ only in ways that are tolerated
-- column mismatch UInt64 [pairs]: differ
-- column error UInt64 [pairs]: one side gave no answer
-- column incomparable UInt64 [pairs]: there is no single right answer
-- column missing UInt64 [pairs]: the shadow never answered
-- column undecided UInt64 [pairs]: a limit was reached
-- column mismatch_ratio Nullable(Float64) [0 to 1]: mismatch by n_judged; NULL where that is 0
-- column mismatch_low Nullable(Float64) [0 to 1]: lower end of its 95 % interval (Wilson)
-- column mismatch_high Nullable(Float64) [0 to 1]: upper end
WITH
    1.959963984540054 AS z,
    (k, n) -> if(n = 0, NULL, if(k = 0, 0, greatest(0, (k / n + z * z / n / 2 - z * sqrt(k / n * (1 - k / n) / n + z * z / n / n / 4)) / (1 + z * z / n)))) AS low,
    (k, n) -> if(n = 0, NULL, if(k = n, 1, least(1, (k / n + z * z / n / 2 + z * sqrt(k / n * (1 - k / n) / n + z * z / n / n / 4)) / (1 + z * z / n)))) AS high
SELECT
    network,
    shadow_upstream,
    identical + identical_masked + tolerated + mismatch AS n_judged,
    sumIf(d.n, outcome = 'identical') AS identical,
    sumIf(d.n, outcome = 'identical_masked') AS identical_masked,
    sumIf(d.n, outcome = 'tolerated') AS tolerated,
    sumIf(d.n, outcome = 'mismatch') AS mismatch,
    sumIf(d.n, outcome = 'error') AS error,
    sumIf(d.n, outcome = 'incomparable') AS incomparable,
    sumIf(d.n, outcome = 'missing') AS missing,
    sumIf(d.n, outcome = 'undecided') AS undecided,
    mismatch / nullIf(n_judged, 0) AS mismatch_ratio,
    low(mismatch, n_judged) AS mismatch_low,
    high(mismatch, n_judged) AS mismatch_high
FROM gnomon.divergence_parts AS d
WHERE minute >= toStartOfMinute({from:DateTime64(3)}) AND minute < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
    AND ({finality:String} = '' OR finality = {finality:String})
    AND ({method:String} = '' OR method = {method:String})
GROUP BY network, shadow_upstream
ORDER BY mismatch_ratio DESC NULLS LAST, network, shadow_upstream
LIMIT 1000
