-- What an upstream told of its head. event_id: what tells two of one instant apart, as when two workers heard of it.
CREATE OR REPLACE VIEW gnomon.heads
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    network,
    upstream,
    axis,
    number,
    hash,
    parent_hash,
    source,
    event_id
FROM gnomon_core.heads
