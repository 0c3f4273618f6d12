-- question: How much is stored of each kind that pages show?
-- grain: one row per kind
-- param from DateTime64(3) = now-1h: events from then on count, by their own time
-- column kind String: alerts, breakers, comparisons, heads or requests
-- column n UInt64 [changes]: rows; of alerts also those that every receiver has, and all silences
-- column newest_at Nullable(DateTime64(3, 'UTC')) [UTC]: time of the newest; NULL = there is none
SELECT
    kind,
    sum(one.n) AS n,
    max(one.newest_at) AS newest_at
FROM
(
    SELECT 'requests' AS kind, count() AS n, maxOrNull(at) AS newest_at
    FROM gnomon.requests
    WHERE at >= {from:DateTime64(3)}
    UNION ALL
    SELECT 'comparisons', count(), maxOrNull(at)
    FROM gnomon.comparisons
    WHERE at >= {from:DateTime64(3)}
    UNION ALL
    SELECT 'heads', count(), maxOrNull(at)
    FROM gnomon.heads
    WHERE at >= {from:DateTime64(3)}
    UNION ALL
    SELECT 'heads', count(), maxOrNull(at)
    FROM gnomon.reorgs
    WHERE at >= {from:DateTime64(3)}
    UNION ALL
    SELECT 'breakers', count(), maxOrNull(at)
    FROM gnomon.breaker_transitions
    WHERE at >= {from:DateTime64(3)}
    UNION ALL
    SELECT 'alerts', count() + countIf(delivered), maxOrNull(at)
    FROM gnomon.alerts
    WHERE at >= {from:DateTime64(3)}
    UNION ALL
    SELECT 'alerts', count(), maxOrNull(at)
    FROM gnomon.alert_silences
) AS one
GROUP BY kind
ORDER BY kind
LIMIT 100
