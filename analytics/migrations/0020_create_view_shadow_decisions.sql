-- One shadow and request.
CREATE VIEW IF NOT EXISTS gnomon.shadow_decisions
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    request_id,
    network,
    upstream,
    method,
    decision
FROM gnomon_core.shadow_decisions
