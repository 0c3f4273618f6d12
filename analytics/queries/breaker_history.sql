-- question: Which breakers opened, and why?
-- grain: one row per change of state
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column at DateTime64(3, 'UTC') [UTC]: when
-- column network String: chain
-- column upstream String: whose breaker
-- column from_state String: before
-- column to_state String: after
-- column reason String: what the last miss was
-- column counters Map(String, UInt64): reason → misses
SELECT at, network, upstream, from_state, to_state, reason, counters
FROM gnomon.breaker_transitions
WHERE at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
ORDER BY at DESC, network, upstream
LIMIT 1000
