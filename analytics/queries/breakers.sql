-- question: When was each breaker open, and what missed?
-- grain: one row per network and upstream that clients were sent to, or whose breaker changed
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column upstream String: whose breaker
-- column tier String: primary or fallback; empty = no call in the range
-- column state String: at the end of the range; closed where it never changed
-- column state_at Nullable(DateTime64(3, 'UTC')) [UTC]: since when; NULL = it never changed
-- column n_opened UInt64: times that it opened in the range
-- column open_seconds Float64 [s]: how long it was open in the range; half open is not counted
-- column n_calls UInt64 [calls]: calls for clients and probes in the range
-- column misses Map(String, UInt64) [calls]: error class → calls without an answer in the range
SELECT
    if(b.network = '', a.network, b.network) AS network,
    if(b.upstream = '', a.upstream, b.upstream) AS upstream,
    a.tier AS tier,
    if(b.state = '', 'closed', b.state) AS state,
    b.state_at AS state_at,
    b.n_opened AS n_opened,
    b.open_seconds AS open_seconds,
    a.n_calls AS n_calls,
    mapFromArrays(a.reasons, a.counts) AS misses
FROM
(
    SELECT
        network,
        upstream,
        argMax(tier, n) AS tier,
        sum(n) AS n_calls,
        groupArrayIf(error_class, error_class != '') AS reasons,
        groupArrayIf(n, error_class != '') AS counts
    FROM
    (
        SELECT
            network,
            upstream,
            any(x.tier) AS tier,
            if(outcome IN ('error', 'timeout', 'transport'), x.error_class, '') AS error_class,
            count() AS n
        FROM gnomon.attempts AS x
        WHERE kind IN ('client', 'retry', 'hedge', 'probe') AND x.tier != 'shadow'
            AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
            AND ({network:String} = '' OR network = {network:String})
        GROUP BY network, upstream, error_class
    )
    GROUP BY network, upstream
) AS a
FULL OUTER JOIN
(
    SELECT
        network,
        upstream,
        argMax(to_state, t.at) AS state,
        toNullable(max(t.at)) AS state_at,
        countIf(to_state = 'open' AND t.at >= {from:DateTime64(3)}) AS n_opened,
        arraySort(x -> (x.1, x.4), groupArray((t.at, from_state, to_state, t.event_id))) AS changes,
        arrayConcat([{from:DateTime64(3)}], arrayMap(x -> greatest(x.1, {from:DateTime64(3)}), changes), [{to:DateTime64(3)}]) AS moments,
        arrayConcat([changes[1].2], arrayMap(x -> x.3, changes)) AS states,
        arraySum((s, first, last) -> if(s = 'open', dateDiff('millisecond', first, last) / 1000, 0),
            states, arrayPopBack(moments), arrayPopFront(moments)) AS open_seconds
    FROM gnomon.breaker_transitions AS t
    WHERE t.at >= {from:DateTime64(3)} - INTERVAL 7 DAY AND t.at < {to:DateTime64(3)}
        AND ({network:String} = '' OR network = {network:String})
    GROUP BY network, upstream
) AS b ON b.network = a.network AND b.upstream = a.upstream
ORDER BY state = 'closed', network, upstream
LIMIT 1000
