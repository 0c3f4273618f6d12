-- question: What did a moment do to the traffic of a network?
-- grain: one row
-- param network String: chain
-- param at DateTime64(3): the moment
-- param seconds UInt32 = 120: looked at before and after it
-- column n_before UInt64 [requests]: requests before
-- column n_after UInt64 [requests]: requests after
-- column paid_before UInt64 [requests]: of them, served by a paid fallback
-- column paid_after UInt64 [requests]: the same after
-- column failed_before UInt64 [requests]: of them, without an answer
-- column failed_after UInt64 [requests]: the same after
SELECT
    countIf(r.at < {at:DateTime64(3)}) AS n_before,
    countIf(r.at >= {at:DateTime64(3)}) AS n_after,
    countIf(r.at < {at:DateTime64(3)} AND tier = 'fallback') AS paid_before,
    countIf(r.at >= {at:DateTime64(3)} AND tier = 'fallback') AS paid_after,
    countIf(r.at < {at:DateTime64(3)} AND outcome = 'error') AS failed_before,
    countIf(r.at >= {at:DateTime64(3)} AND outcome = 'error') AS failed_after
FROM gnomon.requests AS r
WHERE network = {network:String}
    AND r.at >= {at:DateTime64(3)} - toIntervalSecond({seconds:UInt32})
    AND r.at < {at:DateTime64(3)} + toIntervalSecond({seconds:UInt32})
LIMIT 1
