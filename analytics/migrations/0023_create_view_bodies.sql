-- Answers by content: join comparisons.primary_hash or shadow_hash.
CREATE VIEW IF NOT EXISTS gnomon.bodies
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    min(at) AS at,
    hash,
    any(n_bytes) AS n_bytes,
    any(is_head_only) AS is_head_only,
    any(body) AS body
FROM gnomon_core.bodies
GROUP BY hash
