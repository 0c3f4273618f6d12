-- question: Which breakers and holds changed, and why?
-- grain: one row per change of state, the newest first
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param before_network String = '': with the other before_…, where a page begins at the instant `to`
-- param before_upstream String = '': see before_network
-- param before_from_state String = '': see before_network
-- param before_to_state String = '': see before_network
-- param before_reason String = '': see before_network
-- param before_event_id String = '': see before_network
-- param network String = '': only this network; empty = all
-- param upstream String = '': only this upstream; empty = all
-- param reason String = '': only with this reason; empty = all
-- param limit UInt32 = 100: most rows
-- column at DateTime64(3, 'UTC') [UTC]: when
-- column network String: chain
-- column upstream String: whose breaker
-- column from_state String: before
-- column to_state String: after
-- column reason String: what the last miss was; quota, rate_limited and cordoned: it was held, not by a breaker
-- column counters Map(String, UInt64): reason → misses
-- column event_id String: of its event
SELECT
    at,
    network,
    upstream,
    from_state,
    to_state,
    reason,
    counters,
    event_id
FROM gnomon.breaker_transitions
WHERE at >= {from:DateTime64(3)} AND at <= {to:DateTime64(3)}
    AND (at, network, upstream, from_state, to_state, reason, event_id)
        < ({to:DateTime64(3)}, {before_network:String}, {before_upstream:String}, {before_from_state:String},
            {before_to_state:String}, {before_reason:String}, {before_event_id:String})
    AND ({network:String} = '' OR network = {network:String})
    AND ({upstream:String} = '' OR upstream = {upstream:String})
    AND ({reason:String} = '' OR reason = {reason:String})
ORDER BY at DESC, network DESC, upstream DESC, from_state DESC, to_state DESC, reason DESC, event_id DESC
LIMIT {limit:UInt32}
