-- question: Which calls were made, for whom, why, and at what price?
-- grain: one row per call to an upstream, the newest first
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param before_attempt_id String = '': where a page begins at the instant `to`
-- param network String = '': only this network; empty = all
-- param upstream String = '': only this upstream; empty = all
-- param tier String = '': only this tier; empty = all
-- param kind String = '': only this kind; empty = all
-- param cause String = '': only this cause of leaving the primary; empty = all
-- param method String = '': only this method; empty = all
-- param outcome String = '': only this outcome; empty = all
-- param request_id String = '': only the calls of this request; empty = all
-- param limit UInt32 = 100: most rows
-- column at DateTime64(3, 'UTC') [UTC]: when it ended
-- column attempt_id String: the call
-- column request_id String: whose it was; empty = our own
-- column network String: chain
-- column upstream String: who was called
-- column vendor String: the company; empty = an own node
-- column account String: the account
-- column tier String: primary, fallback or shadow
-- column kind String: client, retry, hedge, probe, head_poll and so on
-- column cause String: why it left the primary
-- column method String: JSON-RPC method
-- column outcome String: how it ended
-- column error_class String: what went wrong
-- column error_code Nullable(Int64): of the JSON-RPC error; NULL = none
-- column status UInt16: of HTTP; 0 = none
-- column is_empty Bool: the answer was empty
-- column is_cancelled Bool: given up, because another answer came first or the client left
-- column is_wasted Bool: paid and of no use
-- column start_us UInt32 [us]: when it began after its request did
-- column duration_us UInt32 [us]: how long it took
-- column request_bytes UInt32 [bytes]: sent
-- column response_bytes UInt32 [bytes]: received
-- column units Nullable(Decimal(38, 12)) [units]: units of the vendor; NULL = not known
-- column usd Nullable(Decimal(38, 12)) [USD]: exact; NULL = unpriced
-- column is_estimate Bool: the price list does not say it for sure
SELECT
    at,
    attempt_id,
    request_id,
    network,
    upstream,
    vendor,
    account,
    tier,
    kind,
    cause,
    method,
    outcome,
    error_class,
    error_code,
    status,
    is_empty,
    is_cancelled,
    is_wasted,
    start_us,
    duration_us,
    request_bytes,
    response_bytes,
    units,
    usd,
    is_estimate
FROM gnomon.attempts
WHERE at >= {from:DateTime64(3)} AND at <= {to:DateTime64(3)}
    AND (at, attempt_id) < ({to:DateTime64(3)}, {before_attempt_id:String})
    AND ({network:String} = '' OR network = {network:String})
    AND ({upstream:String} = '' OR upstream = {upstream:String})
    AND ({tier:String} = '' OR tier = {tier:String})
    AND ({kind:String} = '' OR kind = {kind:String})
    AND ({cause:String} = '' OR cause = {cause:String})
    AND ({method:String} = '' OR method = {method:String})
    AND ({outcome:String} = '' OR outcome = {outcome:String})
    AND ({request_id:String} = '' OR request_id = {request_id:String})
ORDER BY at DESC, attempt_id DESC
LIMIT {limit:UInt32}
