-- One call to one upstream.
CREATE VIEW IF NOT EXISTS gnomon.attempts
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    multiIf(attempt_id != '', attempt_id, kind = 'shadow', concat(request_id, '.', upstream), concat(request_id, '.', toString(idx))) AS attempt_id,
    request_id,
    project,
    user,
    network,
    upstream,
    vendor,
    account,
    tier,
    kind,
    cause,
    method,
    outcome,
    error_class,
    is_empty,
    is_cancelled,
    is_wasted,
    duration_us,
    request_bytes,
    response_bytes,
    units,
    usd,
    toBool(isNotNull(usd)) AS is_priced
FROM gnomon_core.attempts
