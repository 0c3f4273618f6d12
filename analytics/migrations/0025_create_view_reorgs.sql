-- Replaced blocks.
CREATE VIEW IF NOT EXISTS gnomon.reorgs
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    network,
    upstream,
    number,
    depth,
    old_hash,
    new_hash
FROM gnomon_core.reorgs
