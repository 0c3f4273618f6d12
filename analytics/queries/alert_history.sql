-- question: What has fired, for how long, and was it told?
-- grain: one row per rule and subject and time that it fired
-- param from DateTime64(3) = now-7d: fired since then
-- param to DateTime64(3) = now: end of the range, not included
-- column fired_at DateTime64(3, 'UTC') [UTC]: when
-- column rule String: the rule
-- column subject String: about what
-- column value Float64: the value that it fired with
-- column threshold Float64: of then
-- column resolved_at Nullable(DateTime64(3, 'UTC')) [UTC]: NULL = it still fires
-- column lasted_seconds Nullable(Float64) [s]: NULL = it still fires
-- column delivered Bool: every receiver was told of its beginning
SELECT
    a.at AS fired_at,
    a.rule AS rule,
    a.subject AS subject,
    a.value AS value,
    a.threshold AS threshold,
    if(a.next_state = 'resolved', a.next_at, NULL) AS resolved_at,
    if(a.next_state = 'resolved', dateDiff('millisecond', a.at, a.next_at) / 1000, NULL) AS lasted_seconds,
    a.delivered AS delivered
FROM
(
    SELECT
        at,
        rule,
        state,
        subject,
        value,
        threshold,
        delivered,
        leadInFrame(state) OVER w AS next_state,
        leadInFrame(at) OVER w AS next_at
    FROM gnomon.alerts
    WHERE at >= {from:DateTime64(3)}
    WINDOW w AS (PARTITION BY rule, subject ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
) AS a
WHERE a.state = 'firing' AND a.at < {to:DateTime64(3)}
ORDER BY fired_at DESC, rule, subject
LIMIT 1000
