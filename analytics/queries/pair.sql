-- question: What did two upstreams answer to one request?
-- grain: one row per shadow of the request
-- param id String: the request's id (X-Gnomon-Request-Id)
-- param shadow String = '': only this shadow; empty = all
-- column at DateTime64(3, 'UTC') [UTC]: when the shadow answered
-- column request_id String: the request
-- column network String: chain
-- column method String: JSON-RPC method
-- column params String: its parameters, JSON; empty where the bytes were equal
-- column primary_upstream String: who was served
-- column shadow_upstream String: the shadow
-- column outcome String: the verdict
-- column class String: what kind of difference
-- column finality String: whether what was asked is final
-- column settled String: what became of a difference on a block that was not final
-- column suspect String: who differs from all others, where that can be said
-- column reason String: why it is undecided
-- column block_number Nullable(UInt64) [block]: the block asked for
-- column head_latest Nullable(UInt64) [block]: the network's newest block then
-- column head_finalized Nullable(UInt64) [block]: its newest final one
-- column primary_head Nullable(UInt64) [block]: the newest block of who was served
-- column shadow_head Nullable(UInt64) [block]: of the shadow
-- column primary_kind String: result, error or none
-- column shadow_kind String: the same of the shadow
-- column primary_hash String: of its answer
-- column shadow_hash String: of the shadow's
-- column primary_bytes UInt32 [bytes]: of its answer
-- column shadow_bytes UInt32 [bytes]: of the shadow's
-- column primary_duration_us UInt32 [us]: how long the client waited
-- column shadow_duration_us UInt32 [us]: how long the shadow took
-- column mask_version String: masks of the verdict
-- column tolerance_version String: tolerances of the verdict
-- column n_masked UInt32 [members]: members that masks removed, both sides together
-- column primary_body String: the answer, where it is kept
-- column shadow_body String: the same of the shadow
-- column primary_is_cut Bool: only its beginning is kept
-- column shadow_is_cut Bool: the same of the shadow
SELECT
    c.at AS at,
    c.request_id AS request_id,
    c.network AS network,
    c.method AS method,
    c.params AS params,
    c.primary_upstream AS primary_upstream,
    c.shadow_upstream AS shadow_upstream,
    c.outcome AS outcome,
    c.class AS class,
    c.finality AS finality,
    c.settled AS settled,
    c.suspect AS suspect,
    c.reason AS reason,
    c.block_number AS block_number,
    c.head_latest AS head_latest,
    c.head_finalized AS head_finalized,
    c.primary_head AS primary_head,
    c.shadow_head AS shadow_head,
    c.primary_kind AS primary_kind,
    c.shadow_kind AS shadow_kind,
    c.primary_hash AS primary_hash,
    c.shadow_hash AS shadow_hash,
    c.primary_bytes AS primary_bytes,
    c.shadow_bytes AS shadow_bytes,
    c.primary_duration_us AS primary_duration_us,
    c.shadow_duration_us AS shadow_duration_us,
    c.mask_version AS mask_version,
    c.tolerance_version AS tolerance_version,
    c.n_masked AS n_masked,
    b.primary_body AS primary_body,
    b.shadow_body AS shadow_body,
    b.primary_is_cut AS primary_is_cut,
    b.shadow_is_cut AS shadow_is_cut
FROM gnomon.comparisons AS c
LEFT JOIN
(
    SELECT
        k.shadow_upstream AS shadow_upstream,
        anyIf(body, hash = k.primary_hash) AS primary_body,
        anyIf(body, hash = k.shadow_hash) AS shadow_body,
        toBool(maxIf(is_head_only, hash = k.primary_hash)) AS primary_is_cut,
        toBool(maxIf(is_head_only, hash = k.shadow_hash)) AS shadow_is_cut
    FROM
    (
        SELECT shadow_upstream, primary_hash, shadow_hash
        FROM gnomon.comparisons
        WHERE request_id = {id:String}
    ) AS k
    CROSS JOIN
    (
        SELECT hash, body, is_head_only
        FROM gnomon.bodies
        WHERE hash IN
        (
            SELECT arrayJoin([primary_hash, shadow_hash])
            FROM gnomon.comparisons
            WHERE request_id = {id:String} AND ({shadow:String} = '' OR shadow_upstream = {shadow:String})
        )
    ) AS kept
    GROUP BY k.shadow_upstream
) AS b ON b.shadow_upstream = c.shadow_upstream
WHERE c.request_id = {id:String} AND ({shadow:String} = '' OR c.shadow_upstream = {shadow:String})
ORDER BY shadow_upstream
LIMIT 100
