-- question: What goes wrong at which upstream?
-- grain: one row per network, upstream, outcome and error class
-- param from DateTime64(3) = now-24h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- column network String: chain
-- column upstream String: who was called
-- column outcome String: error, timeout or transport
-- column error_class String: what went wrong
-- column n UInt64 [calls]: calls
-- column last_at DateTime64(3, 'UTC') [UTC]: when it was seen last
-- column example_method String: the method of the last
SELECT
    network,
    upstream,
    outcome,
    error_class,
    count() AS n,
    max(a.at) AS last_at,
    argMax(method, a.at) AS example_method
FROM gnomon.attempts AS a
WHERE outcome IN ('error', 'timeout', 'transport')
    AND a.at >= {from:DateTime64(3)} AND a.at < {to:DateTime64(3)}
    AND ({network:String} = '' OR network = {network:String})
GROUP BY network, upstream, outcome, error_class
ORDER BY n DESC, network, upstream, outcome, error_class
LIMIT 1000
