-- question: Which networks were called?
-- grain: one row per network
-- param from DateTime64(3) = now-7d: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- column network String: chain
-- column n UInt64 [calls]: calls for clients, probes and shadows
SELECT network, sum(h.n) AS n
FROM gnomon.health_minutely AS h
WHERE minute >= {from:DateTime64(3)} AND minute < {to:DateTime64(3)}
GROUP BY network
ORDER BY network
LIMIT 1000
