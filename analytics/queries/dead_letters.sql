-- question: Which records could not be stored, and why?
-- grain: one row per dead letter, newest first
-- param from DateTime64(3) = now-7d: start of the range, included; by when ingest met the record
-- param to DateTime64(3) = now: end of the range, not included
-- param reason String = '': no_event, unknown_version, out_of_range, step_failed or refused; empty = any
-- param limit UInt32 = 100: rows at most
-- column at DateTime64(3, 'UTC') [UTC]: when ingest met it
-- column topic LowCardinality(String): where it lay; `log` = a log on disk
-- column partition UInt16: of the topic
-- column offset UInt64: in the partition
-- column reason LowCardinality(String): what is wrong with it
-- column detail String: in words
-- column n_bytes UInt64 [bytes]: its length
-- column head String: its first 200 bytes
SELECT
    at,
    topic,
    partition,
    offset,
    reason,
    detail,
    length(bytes) AS n_bytes,
    substring(bytes, 1, 200) AS head
FROM gnomon.dead_letters
WHERE at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)} AND ({reason:String} = '' OR reason = {reason:String})
ORDER BY at DESC, topic, partition, offset
LIMIT {limit:UInt32}
