-- Verdicts per minute as they were added up: a group may stand in several rows until they merge, so n is to be summed. For
-- questions that sum anyway: grouping by minute first, as gnomon.divergence_minutely does, costs twenty times as much.
CREATE VIEW IF NOT EXISTS gnomon.divergence_parts
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    minute,
    network,
    method,
    shadow_upstream,
    outcome,
    class,
    finality,
    CAST(n, 'UInt64') AS n
FROM gnomon_core.divergence_minutely
