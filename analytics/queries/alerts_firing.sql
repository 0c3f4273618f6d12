-- question: What fires now?
-- grain: one row per rule and subject that fires
-- param from DateTime64(3) = now-90d: since when history is looked at
-- column fired_at DateTime64(3, 'UTC') [UTC]: since when
-- column rule String: the rule
-- column subject String: about what
-- column value Float64: the value that it fired with
-- column threshold Float64: of then
-- column delivered Bool: every receiver was told; false where there was none, or a silence
SELECT
    max(a.at) AS fired_at,
    rule,
    subject,
    argMax(a.value, a.at) AS value,
    argMax(a.threshold, a.at) AS threshold,
    argMax(a.delivered, a.at) AS delivered
FROM gnomon.alerts AS a
WHERE a.at >= {from:DateTime64(3)}
GROUP BY rule, subject
HAVING argMax(a.state, a.at) = 'firing'
ORDER BY fired_at DESC, rule, subject
LIMIT 1000
