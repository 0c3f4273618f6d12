-- question: What happened to one request?
-- grain: one row per step: the request itself, each call, each shadow's verdict
-- param id String: the request's id (X-Gnomon-Request-Id)
-- column at DateTime64(3, 'UTC') [UTC]: when it ended
-- column step String: request, call or verdict
-- column upstream String: who was asked, or served
-- column tier String: primary, fallback or shadow
-- column what String: method of a request, kind of a call, class of a verdict
-- column cause String: why it left the primary
-- column outcome String: how it ended
-- column error_class String: what went wrong
-- column duration_us UInt32 [us]: how long it took
-- column usd Nullable(Decimal(38, 12)) [USD]: what it cost; NULL = unpriced, or no call
SELECT at, step, upstream, tier, what, cause, outcome, error_class, duration_us, usd
FROM
(
    SELECT
        1 AS place,
        at,
        'request' AS step,
        upstream,
        tier,
        method AS what,
        cause,
        outcome,
        error_class,
        duration_us,
        CAST(NULL, 'Nullable(Decimal(38, 12))') AS usd
    FROM gnomon.requests
    WHERE request_id = {id:String}
    UNION ALL
    SELECT 2, at, 'call', upstream, tier, kind, cause, outcome, error_class, duration_us, usd
    FROM gnomon.attempts
    WHERE request_id = {id:String}
    UNION ALL
    SELECT 3, at, 'verdict', shadow_upstream, 'shadow', class, finality, outcome, '', shadow_duration_us, NULL
    FROM gnomon.comparisons
    WHERE request_id = {id:String}
)
ORDER BY place, at, upstream
LIMIT 1000
