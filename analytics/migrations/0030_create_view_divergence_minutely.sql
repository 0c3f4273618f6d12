-- Verdicts per minute.
CREATE VIEW IF NOT EXISTS gnomon.divergence_minutely
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    minute,
    network,
    method,
    shadow_upstream,
    outcome,
    class,
    finality,
    sum(n) AS n
FROM gnomon_core.divergence_minutely
GROUP BY minute, network, method, shadow_upstream, outcome, class, finality
