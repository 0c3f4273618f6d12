-- question: Which shadows got a copy of one request, and why not the others?
-- grain: one row per shadow
-- param request_id String: the request's id (X-Gnomon-Request-Id)
-- column at DateTime64(3, 'UTC') [UTC]: when it was decided
-- column upstream String: the shadow
-- column decision String: mirrored, or why not
SELECT at, upstream, decision
FROM gnomon.shadow_decisions
WHERE request_id = {request_id:String}
ORDER BY upstream, at
LIMIT 1000
