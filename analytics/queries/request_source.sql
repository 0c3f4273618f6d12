-- question: Where does what is stored of one request come from?
-- grain: one row per stored event of the request itself; none while it is not stored yet
-- param id String: the request's id (X-Gnomon-Request-Id)
-- column at DateTime64(3, 'UTC') [UTC]: when it was answered
-- column event_id String: of its event: process and number
-- column topic String: where the event lay; log = a log on disk
-- column partition UInt16: of the topic
-- column offset UInt64: in the partition
-- column agent String: the client's User-Agent
-- column rpc_id String: the client's JSON-RPC id, as it came
-- column answer_kind String: result, error or none
-- column answer_hash String: xxh3-128 of the answer
-- column reject_reason String: why it was not dispatched; empty = it was
SELECT at, event_id, topic, partition, offset, agent, rpc_id, answer_kind, answer_hash, reject_reason
FROM gnomon.requests
WHERE request_id = {id:String}
ORDER BY at, event_id
LIMIT 100
