-- Changes of heads.
CREATE VIEW IF NOT EXISTS gnomon.heads
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    network,
    upstream,
    axis,
    number,
    hash,
    parent_hash,
    source
FROM gnomon_core.heads
