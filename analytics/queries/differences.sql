-- question: Which differences are there, how often, and since when?
-- grain: one row per difference: network, method, shadow, generic path and class
-- param from DateTime64(3) = now-7d: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param method String = '': only this method; empty = all
-- param shadow String = '': only this shadow; empty = all
-- param class String = '': only this class; empty = all
-- param finality String = 'finalized': only pairs of this finality; empty = all
-- param outcome String = 'mismatch': only pairs with this outcome; empty = all
-- param finding String = '': only this one; empty = all
-- column finding String: its name: F- and eight hexadecimal digits made from what it is
-- column network String: chain
-- column method String: JSON-RPC method
-- column shadow_upstream String: the shadow
-- column generic_path String: where, without indexes
-- column class String: what kind of difference
-- column n_pairs UInt64 [pairs]: pairs that have it
-- column n_paths UInt64 [places]: places, all pairs together
-- column n_judged UInt64 [pairs]: pairs of this network, method, shadow and finality with a verdict, in the same time
-- column pairs_ratio Float64 [0 to 1]: n_pairs by n_judged; a pair can be there before it is counted, so by n_pairs at least
-- column pairs_low Float64 [0 to 1]: lower end of its 95 % interval (Wilson)
-- column pairs_high Float64 [0 to 1]: upper end
-- column seen_at DateTime64(3, 'UTC') [UTC]: when it was first seen at all, up to 90 days before the range
-- column first_at DateTime64(3, 'UTC') [UTC]: the first of the range
-- column last_at DateTime64(3, 'UTC') [UTC]: the last
-- column primary_right UInt64 [pairs]: settled: both now give what the primary gave
-- column shadow_right UInt64 [pairs]: settled: both now give what the shadow gave
-- column suspect_primary UInt64 [pairs]: the primary is the one that differs from all others
-- column suspect_shadow UInt64 [pairs]: the shadow is
-- column days Array(UInt64) [pairs]: pairs on each of the last seven days of the range, the oldest first
-- column example_request_id String: the last request that showed it
-- column primary_value String: JSON of what the primary gave there; empty = the member is absent
-- column shadow_value String: the same of the shadow
WITH
    1.959963984540054 AS z,
    (k, n) -> if(n = 0, NULL, if(k = 0, 0, greatest(0, (k / n + z * z / n / 2 - z * sqrt(k / n * (1 - k / n) / n + z * z / n / n / 4)) / (1 + z * z / n)))) AS low,
    (k, n) -> if(n = 0, NULL, if(k = n, 1, least(1, (k / n + z * z / n / 2 + z * sqrt(k / n * (1 - k / n) / n + z * z / n / n / 4)) / (1 + z * z / n)))) AS high
SELECT
    concat('F-', substring(hex(MD5(concat(network, '\n', method, '\n', shadow_upstream, '\n', generic_path, '\n', class))), 1, 8)) AS finding,
    f.network AS network,
    f.method AS method,
    f.shadow_upstream AS shadow_upstream,
    f.generic_path AS generic_path,
    f.class AS class,
    uniqExact(f.request_id) AS n_pairs,
    sum(f.n_paths) AS n_paths,
    any(d.n_judged) AS n_judged,
    n_pairs / greatest(n_judged, n_pairs) AS pairs_ratio,
    assumeNotNull(low(n_pairs, greatest(n_judged, n_pairs))) AS pairs_low,
    assumeNotNull(high(n_pairs, greatest(n_judged, n_pairs))) AS pairs_high,
    any(s.seen_at) AS seen_at,
    min(f.at) AS first_at,
    max(f.at) AS last_at,
    uniqExactIf(f.request_id, c.settled = 'primary_right') AS primary_right,
    uniqExactIf(f.request_id, c.settled = 'shadow_right') AS shadow_right,
    uniqExactIf(f.request_id, c.suspect = 'primary') AS suspect_primary,
    uniqExactIf(f.request_id, c.suspect = 'shadow') AS suspect_shadow,
    arrayMap(ago -> length(arrayFilter(x -> x = ago, groupArray(least(intDiv(dateDiff('second', f.at, {to:DateTime64(3)}), 86400), 7)))),
        [6, 5, 4, 3, 2, 1, 0]) AS days,
    argMax(f.request_id, f.at) AS example_request_id,
    argMax(f.primary_value, f.at) AS primary_value,
    argMax(f.shadow_value, f.at) AS shadow_value
FROM gnomon.findings AS f
INNER JOIN
(
    SELECT request_id, shadow_upstream, settled, suspect
    FROM gnomon.comparisons
    WHERE at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
        AND ({network:String} = '' OR network = {network:String})
        AND ({finality:String} = '' OR finality = {finality:String})
        AND ({outcome:String} = '' OR outcome = {outcome:String})
        AND n_findings > 0
        AND (network, method, shadow_upstream) IN
        (
            SELECT k.network, k.method, k.shadow_upstream
            FROM gnomon.findings AS k
            WHERE k.at >= {from:DateTime64(3)} AND k.at < {to:DateTime64(3)}
                AND ({network:String} = '' OR k.network = {network:String})
                AND ({method:String} = '' OR k.method = {method:String})
                AND ({shadow:String} = '' OR k.shadow_upstream = {shadow:String})
                AND ({class:String} = '' OR k.class = {class:String})
                AND ({finding:String} = ''
                    OR concat('F-', substring(hex(MD5(concat(k.network, '\n', k.method, '\n', k.shadow_upstream, '\n', k.generic_path, '\n', k.class))), 1, 8)) = {finding:String})
            GROUP BY k.network, k.method, k.shadow_upstream
        )
) AS c ON c.request_id = f.request_id AND c.shadow_upstream = f.shadow_upstream
LEFT JOIN
(
    SELECT network, method, shadow_upstream, sum(m.n) AS n_judged
    FROM gnomon.divergence_parts AS m
    WHERE minute >= toStartOfMinute({from:DateTime64(3)}) AND minute < {to:DateTime64(3)}
        AND ({finality:String} = '' OR finality = {finality:String})
        AND outcome IN ('identical', 'identical_masked', 'tolerated', 'mismatch')
    GROUP BY network, method, shadow_upstream
) AS d ON d.network = f.network AND d.method = f.method AND d.shadow_upstream = f.shadow_upstream
LEFT JOIN
(
    SELECT network, method, shadow_upstream, generic_path, class, min(e.at) AS seen_at
    FROM gnomon.findings AS e
    WHERE e.at >= {from:DateTime64(3)} - INTERVAL 90 DAY AND e.at < {to:DateTime64(3)}
        AND ({network:String} = '' OR network = {network:String})
    GROUP BY network, method, shadow_upstream, generic_path, class
) AS s ON s.network = f.network AND s.method = f.method AND s.shadow_upstream = f.shadow_upstream
    AND s.generic_path = f.generic_path AND s.class = f.class
WHERE f.at >= {from:DateTime64(3)} AND f.at < {to:DateTime64(3)}
    AND ({network:String} = '' OR f.network = {network:String})
    AND ({method:String} = '' OR f.method = {method:String})
    AND ({shadow:String} = '' OR f.shadow_upstream = {shadow:String})
    AND ({class:String} = '' OR f.class = {class:String})
GROUP BY network, method, shadow_upstream, generic_path, class
HAVING {finding:String} = '' OR finding = {finding:String}
ORDER BY class = 'empty_vs_data' DESC, n_pairs DESC, network, method, shadow_upstream, generic_path, class
LIMIT 1000
