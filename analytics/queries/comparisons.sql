-- question: Which pairs of answers were judged, and how?
-- grain: one row per pair (request and shadow), the newest first
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param before_request_id String = '': with before_shadow_upstream, where a page begins at the instant `to`
-- param before_shadow_upstream String = '': see before_request_id
-- param network String = '': only this network; empty = all
-- param method String = '': only this method; empty = all
-- param shadow_upstream String = '': only this shadow; empty = all
-- param primary_upstream String = '': only where it was served; empty = all
-- param outcome String = '': only this outcome; empty = all
-- param class String = '': only this class of difference; empty = all
-- param finality String = '': only this finality; empty = all
-- param settled String = '': only settled so; empty = all
-- param request_id String = '': only this request; empty = all
-- param limit UInt32 = 100: most rows
-- column at DateTime64(3, 'UTC') [UTC]: when the shadow answered
-- column request_id String: the request; `gnomon query request --param id=…` shows all of it
-- column network String: chain
-- column method String: JSON-RPC method
-- column primary_upstream String: who was served
-- column shadow_upstream String: the shadow
-- column outcome String: the verdict
-- column class String: what kind of difference; none = none
-- column finality String: whether what was asked is final
-- column settled String: what became of a difference on a block that was not final
-- column suspect String: who differs from all others, where that can be said
-- column block_number Nullable(UInt64) [block]: the block asked for; NULL = none
-- column is_emptyish Bool: the shadow's answer is empty
-- column is_larger Bool: the shadow's answer has more bytes
-- column n_findings UInt16 [findings]: generic paths that differ
-- column primary_duration_us UInt32 [us]: how long the client waited
-- column shadow_duration_us UInt32 [us]: how long the shadow took
-- column primary_hash String: xxh3-128 of the answer; `gnomon.bodies` has what was kept
-- column shadow_hash String: the same of the shadow's
-- column mask_version String: masks of the verdict
-- column tolerance_version String: tolerances of the verdict
SELECT
    at,
    request_id,
    network,
    method,
    primary_upstream,
    shadow_upstream,
    outcome,
    class,
    finality,
    settled,
    suspect,
    block_number,
    is_emptyish,
    is_larger,
    n_findings,
    primary_duration_us,
    shadow_duration_us,
    primary_hash,
    shadow_hash,
    mask_version,
    tolerance_version
FROM gnomon.comparisons
WHERE at >= {from:DateTime64(3)} AND at <= {to:DateTime64(3)}
    AND (at, request_id, shadow_upstream)
        < ({to:DateTime64(3)}, {before_request_id:String}, {before_shadow_upstream:String})
    AND ({network:String} = '' OR network = {network:String})
    AND ({method:String} = '' OR method = {method:String})
    AND ({shadow_upstream:String} = '' OR shadow_upstream = {shadow_upstream:String})
    AND ({primary_upstream:String} = '' OR primary_upstream = {primary_upstream:String})
    AND ({outcome:String} = '' OR outcome = {outcome:String})
    AND ({class:String} = '' OR class = {class:String})
    AND ({finality:String} = '' OR finality = {finality:String})
    AND ({settled:String} = '' OR settled = {settled:String})
    AND ({request_id:String} = '' OR request_id = {request_id:String})
ORDER BY at DESC, request_id DESC, shadow_upstream DESC
LIMIT {limit:UInt32}
