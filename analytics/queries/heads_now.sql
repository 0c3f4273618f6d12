-- question: What is each upstream's head, and how was it learnt?
-- grain: one row per network, upstream and axis
-- param from DateTime64(3) = now-24h: heads seen since then
-- param to DateTime64(3) = now: and before
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column upstream String: whose head
-- column axis String: latest, safe or finalized
-- column number UInt64 [block]: its head as it last changed
-- column hash String: of the block; empty = not known
-- column source String: poll, subscription or response
-- column last_at DateTime64(3, 'UTC') [UTC]: when it last changed
-- column heard_at Nullable(DateTime64(3, 'UTC')) [UTC]: when it last answered when it was asked for it; NULL = not in the range
SELECT
    h.network AS network,
    h.upstream AS upstream,
    h.axis AS axis,
    argMax(h.number, h.at) AS number,
    argMax(h.hash, h.at) AS hash,
    argMax(h.source, h.at) AS source,
    max(h.at) AS last_at,
    any(p.heard_at) AS heard_at
FROM gnomon.heads AS h
LEFT JOIN
(
    SELECT network, upstream, toNullable(max(a.at)) AS heard_at
    FROM gnomon.attempts AS a
    WHERE kind = 'head_poll' AND outcome = 'result'
        AND a.at >= {from:DateTime64(3)} AND a.at < {to:DateTime64(3)}
        AND ({network:String} = '' OR network = {network:String})
    GROUP BY network, upstream
) AS p ON p.network = h.network AND p.upstream = h.upstream
WHERE h.at >= {from:DateTime64(3)} AND h.at < {to:DateTime64(3)}
    AND ({network:String} = '' OR h.network = {network:String})
GROUP BY network, upstream, axis
ORDER BY network, upstream, axis
LIMIT 10000
