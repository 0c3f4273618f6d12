-- How upstreams answered, per minute. Quantiles: the smallest duration that at least that share of calls did not exceed.
CREATE VIEW IF NOT EXISTS gnomon.health_minutely
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
WITH
    sumMap(durations) AS merged,
    arrayCumSum(mapValues(merged)) AS at_most
SELECT
    minute,
    network,
    upstream,
    tier,
    sum(n) AS n,
    sum(n_failed) AS n_failed,
    sum(n_empty) AS n_empty,
    mapKeys(merged)[arrayFirstIndex(x -> x * 2 >= at_most[-1], at_most)] AS p50_us,
    mapKeys(merged)[arrayFirstIndex(x -> x * 100 >= at_most[-1] * 99, at_most)] AS p99_us
FROM gnomon_core.health_minutely
GROUP BY minute, network, upstream, tier
