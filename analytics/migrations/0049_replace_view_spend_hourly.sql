-- What calls cost, per hour. units, usd: NULL = not known of any; n_unpriced: calls that are in no usd.
CREATE OR REPLACE VIEW gnomon.spend_hourly
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    s.hour AS hour,
    s.project AS project,
    s.network AS network,
    s.vendor AS vendor,
    s.account AS account,
    s.upstream AS upstream,
    s.tier AS tier,
    s.kind AS kind,
    s.cause AS cause,
    s.method AS method,
    sum(s.n) AS n,
    sum(s.n_wasted) AS n_wasted,
    if(sum(s.n_unitless) = sum(s.n), NULL, sum(s.units)) AS units,
    if(sum(s.n_unpriced) = sum(s.n), NULL, sum(s.usd)) AS usd,
    sum(s.n_unpriced) AS n_unpriced
FROM gnomon_core.spend_hourly AS s
GROUP BY s.hour, s.project, s.network, s.vendor, s.account, s.upstream, s.tier, s.kind, s.cause, s.method
