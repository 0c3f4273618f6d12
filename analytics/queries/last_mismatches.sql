-- question: Which pairs differed last?
-- grain: one row per differing pair
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param limit UInt32 = 20: most rows
-- column at DateTime64(3, 'UTC') [UTC]: when the shadow answered
-- column request_id String: the request; `gnomon query request --param id=…` shows all of it
-- column network String: chain
-- column method String: JSON-RPC method
-- column primary_upstream String: who was served
-- column shadow_upstream String: the shadow
-- column class String: what kind of difference
-- column finality String: whether what was asked is final
-- column block_number Nullable(UInt64) [block]: the block asked for; NULL = none
-- column n_findings UInt16 [findings]: generic paths that differ
-- column path String: the first of them
-- column primary_value String: what the primary gave there
-- column shadow_value String: what the shadow gave there
SELECT
    c.at AS at,
    c.request_id AS request_id,
    c.network AS network,
    c.method AS method,
    c.primary_upstream AS primary_upstream,
    c.shadow_upstream AS shadow_upstream,
    c.class AS class,
    c.finality AS finality,
    c.block_number AS block_number,
    c.n_findings AS n_findings,
    f.first_path AS path,
    f.first_primary AS primary_value,
    f.first_shadow AS shadow_value
FROM
(
    SELECT at, request_id, network, method, primary_upstream, shadow_upstream, class, finality, block_number, n_findings
    FROM gnomon.comparisons
    WHERE outcome = 'mismatch'
        AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
        AND ({network:String} = '' OR network = {network:String})
    ORDER BY at DESC, request_id
    LIMIT {limit:UInt32}
) AS c
LEFT JOIN
(
    SELECT
        request_id,
        shadow_upstream,
        any(path) AS first_path,
        any(primary_value) AS first_primary,
        any(shadow_value) AS first_shadow
    FROM gnomon.findings
    WHERE at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
        AND ({network:String} = '' OR network = {network:String})
    GROUP BY request_id, shadow_upstream
) AS f ON f.request_id = c.request_id AND f.shadow_upstream = c.shadow_upstream
ORDER BY at DESC, request_id, shadow_upstream
LIMIT {limit:UInt32}
