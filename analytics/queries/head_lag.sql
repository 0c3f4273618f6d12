-- question: Which upstream is behind, by how many blocks and for how long?
-- grain: one row per network, axis and upstream
-- param from DateTime64(3) = now-24h: heads seen since then
-- param to DateTime64(3) = now: and before
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column axis String: latest, safe or finalized
-- column upstream String: whose head
-- column number UInt64 [block]: its highest
-- column lag_blocks Int64 [blocks]: behind the highest of all upstreams
-- column last_at DateTime64(3, 'UTC') [UTC]: when it last changed
-- column age_seconds Float64 [s]: since then, at `to`
SELECT
    network,
    axis,
    upstream,
    max(h.number) AS number,
    max(max(h.number)) OVER (PARTITION BY network, axis) - number AS lag_blocks,
    max(h.at) AS last_at,
    round(dateDiff('millisecond', last_at, {to:DateTime64(3)}) / 1000, 1) AS age_seconds
FROM gnomon.heads AS h
WHERE h.at >= {from:DateTime64(3)} AND h.at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY network, axis, upstream
ORDER BY network, axis, lag_blocks DESC, upstream
LIMIT 1000
