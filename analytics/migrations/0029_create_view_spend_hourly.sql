-- What calls cost, per hour.
CREATE VIEW IF NOT EXISTS gnomon.spend_hourly
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    hour,
    project,
    network,
    vendor,
    account,
    upstream,
    tier,
    kind,
    cause,
    method,
    sum(n) AS n,
    sum(n_wasted) AS n_wasted,
    sum(units) AS units,
    sum(usd) AS usd
FROM gnomon_core.spend_hourly
GROUP BY hour, project, network, vendor, account, upstream, tier, kind, cause, method
