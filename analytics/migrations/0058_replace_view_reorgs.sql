-- Replaced blocks. event_id: what tells two of one instant apart.
CREATE OR REPLACE VIEW gnomon.reorgs
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    network,
    upstream,
    number,
    depth,
    old_hash,
    new_hash,
    event_id
FROM gnomon_core.reorgs
