-- question: What differs in which pair?
-- grain: one row per pair, generic path and class, the newest first
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param before_request_id String = '': with the other before_…, where a page begins at the instant `to`
-- param before_shadow_upstream String = '': see before_request_id
-- param before_generic_path String = '': see before_request_id
-- param before_class String = '': see before_request_id
-- param network String = '': only this network; empty = all
-- param method String = '': only this method; empty = all
-- param shadow_upstream String = '': only this shadow; empty = all
-- param generic_path String = '': only this path; empty = all
-- param class String = '': only this class of difference; empty = all
-- param request_id String = '': only this request; empty = all
-- param limit UInt32 = 100: most rows
-- column at DateTime64(3, 'UTC') [UTC]: when the shadow answered
-- column request_id String: the request
-- column network String: chain
-- column method String: JSON-RPC method
-- column shadow_upstream String: the shadow
-- column generic_path String: where, without indexes
-- column class String: what kind of difference
-- column n_paths UInt32 [places]: places of the pair
-- column path String: the first of them
-- column primary_value String: JSON of what the primary gave there, cut to a limit; empty = the member is absent
-- column shadow_value String: the same of the shadow
SELECT
    at,
    request_id,
    network,
    method,
    shadow_upstream,
    generic_path,
    class,
    n_paths,
    path,
    primary_value,
    shadow_value
FROM gnomon.findings
WHERE at >= {from:DateTime64(3)} AND at <= {to:DateTime64(3)}
    AND (at, request_id, shadow_upstream, generic_path, class)
        < ({to:DateTime64(3)}, {before_request_id:String}, {before_shadow_upstream:String},
            {before_generic_path:String}, {before_class:String})
    AND ({network:String} = '' OR network = {network:String})
    AND ({method:String} = '' OR method = {method:String})
    AND ({shadow_upstream:String} = '' OR shadow_upstream = {shadow_upstream:String})
    AND ({generic_path:String} = '' OR generic_path = {generic_path:String})
    AND ({class:String} = '' OR class = {class:String})
    AND ({request_id:String} = '' OR request_id = {request_id:String})
ORDER BY at DESC, request_id DESC, shadow_upstream DESC, generic_path DESC, class DESC
LIMIT {limit:UInt32}
