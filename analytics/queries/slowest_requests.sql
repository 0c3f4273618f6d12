-- question: Which requests were slowest?
-- grain: one row per request
-- param from DateTime64(3) = now-1h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param limit UInt32 = 20: most rows
-- column at DateTime64(3, 'UTC') [UTC]: when it was answered
-- column request_id String: the request
-- column network String: chain
-- column method String: JSON-RPC method
-- column upstream String: who was served
-- column tier String: primary, fallback or shadow
-- column cause String: why it left the primary
-- column outcome String: how it ended
-- column n_attempts UInt16 [calls]: calls it took
-- column duration_us UInt32 [us]: how long the client waited
SELECT at, request_id, network, method, upstream, tier, cause, outcome, n_attempts, duration_us
FROM gnomon.requests
WHERE at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
ORDER BY duration_us DESC, at, request_id
LIMIT {limit:UInt32}
