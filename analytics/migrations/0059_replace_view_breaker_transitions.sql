-- Breakers' changes of state. event_id: what tells two of one instant apart.
CREATE OR REPLACE VIEW gnomon.breaker_transitions
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    network,
    upstream,
    from_state,
    to_state,
    reason,
    counters,
    event_id
FROM gnomon_core.breaker_transitions
