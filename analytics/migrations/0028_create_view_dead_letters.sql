-- Poison records, with their bytes.
CREATE VIEW IF NOT EXISTS gnomon.dead_letters
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    topic,
    part AS partition,
    off AS offset,
    reason,
    detail,
    bytes
FROM gnomon_core.dead_letters
