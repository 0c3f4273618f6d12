-- One call to one upstream. repricing: the run of `gnomon rebuild --prices` that priced it, 0 = when it was stored; units_charged,
-- usd_charged: what it was charged then.
CREATE OR REPLACE VIEW gnomon.attempts
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
    toBool(isNotNull(usd)) AS is_priced,
    is_estimate,
    repricing,
    if(empty(former_prices), units, former_prices[1].units) AS units_charged,
    if(empty(former_prices), usd, former_prices[1].usd) AS usd_charged
FROM gnomon_core.attempts
