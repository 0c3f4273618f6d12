-- One client request.
CREATE VIEW IF NOT EXISTS gnomon.requests
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    request_id,
    batch_id,
    project,
    network,
    user,
    method,
    block_number,
    block_tag,
    outcome,
    error_class,
    upstream,
    tier,
    n_attempts,
    cause,
    short_circuited,
    beyond_head,
    escaped,
    duration_us,
    response_bytes,
    head_latest,
    head_finalized
FROM gnomon_core.requests
