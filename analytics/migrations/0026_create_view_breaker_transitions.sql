-- Breakers' changes of state.
CREATE VIEW IF NOT EXISTS gnomon.breaker_transitions
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    network,
    upstream,
    from_state,
    to_state,
    reason,
    counters
FROM gnomon_core.breaker_transitions
