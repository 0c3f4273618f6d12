-- question: When did one difference occur?
-- grain: one row per step with a pair
-- param from DateTime64(3) = now-7d: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String: chain
-- param method String: JSON-RPC method
-- param shadow String: the shadow
-- param generic_path String: where, without indexes
-- param class String: what kind of difference
-- param finality String = 'finalized': only pairs of this finality; empty = all
-- param outcome String = 'mismatch': only pairs with this outcome; empty = all
-- param step UInt32 = 3600: seconds of a step, at least 1; steps are counted from the start of the range
-- column step UInt64: number of the step; 0 begins at `from`
-- column n_pairs UInt64 [pairs]: pairs that have it
SELECT
    toUInt64(intDiv(dateDiff('second', {from:DateTime64(3)}, f.at), greatest({step:UInt32}, 1))) AS step,
    uniqExact(f.request_id) AS n_pairs
FROM gnomon.findings AS f
INNER JOIN
(
    SELECT request_id
    FROM gnomon.comparisons
    WHERE at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
        AND network = {network:String} AND method = {method:String} AND shadow_upstream = {shadow:String}
        AND ({finality:String} = '' OR finality = {finality:String})
        AND ({outcome:String} = '' OR outcome = {outcome:String})
        AND n_findings > 0
) AS c ON c.request_id = f.request_id
WHERE f.at >= {from:DateTime64(3)} AND f.at < {to:DateTime64(3)}
    AND f.network = {network:String} AND f.method = {method:String} AND f.shadow_upstream = {shadow:String}
    AND f.generic_path = {generic_path:String} AND f.class = {class:String}
GROUP BY step
ORDER BY step
LIMIT 10000
