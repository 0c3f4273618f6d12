-- question: With whom do other shadows agree that were asked the same?
-- grain: one row per other shadow of the requests that have one difference
-- param from DateTime64(3) = now-7d: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String: chain
-- param method String: JSON-RPC method
-- param shadow String: the shadow
-- param generic_path String: where, without indexes
-- param class String: what kind of difference
-- param finality String = 'finalized': only pairs of this finality; empty = all
-- param outcome String = 'mismatch': only pairs with this outcome; empty = all
-- column other_upstream String: the other shadow
-- column is_control Bool: it is the primary, asked again
-- column n UInt64 [pairs]: answers that it gave to these requests, with a verdict
-- column agrees_primary UInt64 [pairs]: of them, equal to the primary's, masks and tolerances applied
-- column agrees_shadow UInt64 [pairs]: of them, byte for byte what the shadow gave
SELECT
    o.shadow_upstream AS other_upstream,
    toBool(max(o.is_control)) AS is_control,
    count() AS n,
    countIf(o.outcome IN ('identical', 'identical_masked', 'tolerated')) AS agrees_primary,
    countIf(o.shadow_hash != '' AND o.shadow_hash = c.shadow_hash) AS agrees_shadow
FROM gnomon.comparisons AS o
INNER JOIN
(
    SELECT request_id, shadow_hash
    FROM gnomon.comparisons
    WHERE at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
        AND network = {network:String} AND method = {method:String} AND shadow_upstream = {shadow:String}
        AND ({finality:String} = '' OR finality = {finality:String})
        AND ({outcome:String} = '' OR outcome = {outcome:String})
        AND n_findings > 0
        AND request_id IN
        (
            SELECT f.request_id AS request_id
            FROM gnomon.findings AS f
            WHERE f.at >= {from:DateTime64(3)} AND f.at < {to:DateTime64(3)}
                AND f.network = {network:String} AND f.method = {method:String} AND f.shadow_upstream = {shadow:String}
                AND f.generic_path = {generic_path:String} AND f.class = {class:String}
        )
) AS c ON c.request_id = o.request_id
WHERE o.at >= {from:DateTime64(3)} - INTERVAL 2 MINUTE AND o.at < {to:DateTime64(3)} + INTERVAL 2 MINUTE
    AND o.network = {network:String} AND o.method = {method:String} AND o.shadow_upstream != {shadow:String}
    AND o.outcome IN ('identical', 'identical_masked', 'tolerated', 'mismatch')
GROUP BY other_upstream
ORDER BY is_control, n DESC, other_upstream
LIMIT 100
