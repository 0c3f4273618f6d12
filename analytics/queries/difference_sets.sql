-- question: Which differences occur together in one pair?
-- grain: one row per shadow and set of differences, the most frequent first
-- param from DateTime64(3) = now-7d: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String: chain
-- param method String: JSON-RPC method
-- column shadow_upstream String: the shadow
-- column generic_paths Array(String): where each difference is, without indexes
-- column classes Array(String): what kind each is, in the same order
-- column paths Array(String): the first place of each in one pair, in the same order
-- column pairs UInt64 [pairs]: pairs that have exactly these differences
SELECT
    shadow_upstream,
    arrayMap(kind -> kind.1, kinds) AS generic_paths,
    arrayMap(kind -> kind.2, kinds) AS classes,
    any(places) AS paths,
    count() AS pairs
FROM
(
    SELECT
        shadow_upstream,
        arraySort(groupArray((generic_path, class, path))) AS found,
        arrayMap(one -> (one.1, one.2), found) AS kinds,
        arrayMap(one -> one.3, found) AS places
    FROM gnomon.findings
    WHERE at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
        AND network = {network:String} AND method = {method:String}
    GROUP BY request_id, shadow_upstream
)
GROUP BY shadow_upstream, kinds
ORDER BY pairs DESC, shadow_upstream, generic_paths, classes
LIMIT 1000
