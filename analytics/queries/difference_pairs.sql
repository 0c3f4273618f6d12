-- question: Which pairs have one difference?
-- grain: one row per pair, the newest first
-- param from DateTime64(3) = now-7d: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String: chain
-- param method String: JSON-RPC method
-- param shadow String: the shadow
-- param generic_path String: where, without indexes
-- param class String: what kind of difference
-- param finality String = 'finalized': only pairs of this finality; empty = all
-- param outcome String = 'mismatch': only pairs with this outcome; empty = all
-- param limit UInt32 = 200: most rows
-- column at DateTime64(3, 'UTC') [UTC]: when the shadow answered
-- column request_id String: the request
-- column n_paths UInt32 [places]: places where it is
-- column path String: the first of them
-- column primary_value String: JSON of what the primary gave there; empty = the member is absent
-- column shadow_value String: the same of the shadow
SELECT
    f.at AS at,
    f.request_id AS request_id,
    f.n_paths AS n_paths,
    f.path AS path,
    f.primary_value AS primary_value,
    f.shadow_value AS shadow_value
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
ORDER BY at DESC, request_id
LIMIT {limit:UInt32}
