-- question: What share of clients' requests needed a paid call?
-- grain: one row per network
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column n_requests UInt64 [requests]: requests that reached an upstream
-- column n_paid UInt64 [requests]: of them, with at least one call that costs money or is unpriced
-- column paid_ratio Float64 [0 to 1]: paid by all
-- column n_paid_calls UInt64 [calls]: such calls
-- column n_paid_empty UInt64 [calls]: of them, with an empty answer
-- column usd Nullable(Decimal(38, 12)) [USD]: what they cost; NULL = none was priced
-- column n_unpriced UInt64 [calls]: of those calls, in no sum, for nobody knows their price
SELECT
    network,
    uniqExact(request_id) AS n_requests,
    uniqExactIf(request_id, is_paid) AS n_paid,
    round(n_paid / n_requests, 6) AS paid_ratio,
    countIf(is_paid) AS n_paid_calls,
    countIf(is_paid AND is_empty) AS n_paid_empty,
    sumIf(a.usd, is_paid) AS usd,
    countIf(is_paid AND a.usd IS NULL) AS n_unpriced
FROM
(
    SELECT network, request_id, is_empty, usd, vendor != '' AND (usd IS NULL OR usd > 0) AS is_paid
    FROM gnomon.attempts
    WHERE kind IN ('client', 'retry', 'hedge')
        AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
        AND ({network:String} = '' OR network = {network:String})
) AS a
GROUP BY network
ORDER BY paid_ratio DESC, network
LIMIT 1000
