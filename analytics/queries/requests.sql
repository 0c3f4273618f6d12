-- question: What did clients ask, and how were they answered?
-- grain: one row per client request, the newest first
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param before_request_id String = '': where a page begins at the instant `to`
-- param network String = '': only this network; empty = all
-- param method String = '': only this method; empty = all
-- param project String = '': only this project; empty = all
-- param user String = '': only this user; empty = all
-- param upstream String = '': only where this upstream was served; empty = all
-- param tier String = '': only where this tier was served; empty = all
-- param outcome String = '': only this outcome; empty = all
-- param cause String = '': only this cause of leaving the primary; empty = all
-- param request_id String = '': only this request; empty = all
-- param limit UInt32 = 100: most rows
-- column at DateTime64(3, 'UTC') [UTC]: when it was answered
-- column request_id String: the request
-- column batch_id String: of the batch that it came in; empty = alone
-- column project String: project
-- column network String: chain
-- column user String: label of the client's secret; empty = none
-- column method String: JSON-RPC method
-- column params String: as they were sent, JSON
-- column block_number Nullable(UInt64) [block]: the block asked for; NULL = none
-- column block_tag String: latest, safe and so on; empty = none
-- column outcome String: how it ended
-- column error_class String: what went wrong
-- column upstream String: who was served; empty = nobody
-- column tier String: of whom was served
-- column cause String: why it left the primary
-- column n_attempts UInt16 [calls]: calls it took
-- column n_skipped_open UInt16 [calls]: upstreams that an open breaker skipped
-- column short_circuited Bool: answered without a call, for its block lies in the future
-- column beyond_head Bool: an empty answer was right, for its block lies above every head
-- column escaped Bool: it reached the paid fallbacks
-- column duration_us UInt32 [us]: how long the client waited
-- column request_bytes UInt32 [bytes]: of its body
-- column response_bytes UInt32 [bytes]: of the answer
-- column head_latest Nullable(UInt64) [block]: the network's newest block then; NULL = unknown
-- column head_finalized Nullable(UInt64) [block]: its newest final one
SELECT
    at,
    request_id,
    batch_id,
    project,
    network,
    user,
    method,
    params,
    block_number,
    block_tag,
    outcome,
    error_class,
    upstream,
    tier,
    cause,
    n_attempts,
    n_skipped_open,
    short_circuited,
    beyond_head,
    escaped,
    duration_us,
    request_bytes,
    response_bytes,
    head_latest,
    head_finalized
FROM gnomon.requests
WHERE at >= {from:DateTime64(3)} AND at <= {to:DateTime64(3)}
    AND (at, request_id) < ({to:DateTime64(3)}, {before_request_id:String})
    AND ({network:String} = '' OR network = {network:String})
    AND ({method:String} = '' OR method = {method:String})
    AND ({project:String} = '' OR project = {project:String})
    AND ({user:String} = '' OR user = {user:String})
    AND ({upstream:String} = '' OR upstream = {upstream:String})
    AND ({tier:String} = '' OR tier = {tier:String})
    AND ({outcome:String} = '' OR outcome = {outcome:String})
    AND ({cause:String} = '' OR cause = {cause:String})
    AND ({request_id:String} = '' OR request_id = {request_id:String})
ORDER BY at DESC, request_id DESC
LIMIT {limit:UInt32}
