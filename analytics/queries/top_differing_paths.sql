-- question: Which members of the answers differ most, and what does a difference look like?
-- grain: one row per network, method, shadow, generic path and class
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param limit UInt32 = 50: most rows
-- column network String: chain
-- column method String: JSON-RPC method
-- column shadow_upstream String: the shadow
-- column generic_path String: where, without indexes
-- column class String: what kind of difference
-- column n_pairs UInt64 [pairs]: pairs that have it
-- column n_paths UInt64 [places]: places, all pairs together
-- column last_at DateTime64(3, 'UTC') [UTC]: when it was seen last
-- column example_request_id String: the last request that showed it
-- column primary_value String: what the primary gave there
-- column shadow_value String: what the shadow gave there
SELECT
    network,
    method,
    shadow_upstream,
    generic_path,
    class,
    uniqExact(f.request_id) AS n_pairs,
    sum(f.n_paths) AS n_paths,
    max(f.at) AS last_at,
    argMax(f.request_id, f.at) AS example_request_id,
    argMax(f.primary_value, f.at) AS primary_value,
    argMax(f.shadow_value, f.at) AS shadow_value
FROM gnomon.findings AS f
WHERE f.at >= {from:DateTime64(3)} AND f.at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY network, method, shadow_upstream, generic_path, class
ORDER BY n_pairs DESC, n_paths DESC, network, method, generic_path, class, shadow_upstream
LIMIT {limit:UInt32}
