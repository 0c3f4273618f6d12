-- question: What was paid since midnight, and what is usual by this time of day?
-- grain: one row
-- param to DateTime64(3) = now: the end of what is counted; the day is the one that it lies in, UTC
-- param network String = '': only this network; empty = all
-- column usd Nullable(Decimal(38, 12)) [USD]: since midnight; NULL = nothing priced
-- column usd_usual Nullable(Float64) [USD]: mean of the days before, 14 at most, each up to the same hour; NULL = no such day
-- column n_days UInt64 [days]: days of that mean
-- column n_unpriced UInt64 [calls]: calls since midnight that nobody knows the price of
SELECT
    sumIf(d.usd, ago = 0) AS usd,
    if(n_days = 0, NULL, round(toFloat64(ifNull(sumIf(d.usd, ago > 0), 0)) / n_days, 9)) AS usd_usual,
    greatest(least(maxIf(ago, ago > 0), 14), 0) AS n_days,
    sumIf(d.n_unpriced, ago = 0) AS n_unpriced
FROM
(
    SELECT
        toUInt64(dateDiff('day', at, {to:DateTime64(3)})) AS ago,
        sum(c.usd) AS usd,
        sum(c.n_unpriced) AS n_unpriced
    FROM
    (
        SELECT hour AS at, usd, n_unpriced
        FROM gnomon.spend_hourly
        WHERE vendor != '' AND hour >= toStartOfDay({to:DateTime64(3)}) - INTERVAL 14 DAY AND hour < toStartOfDay({to:DateTime64(3)})
            AND toHour(hour) < toHour({to:DateTime64(3)})
            AND ({network:String} = '' OR network = {network:String})
        UNION ALL
        SELECT at, usd, toUInt64(isNull(usd))
        FROM gnomon.attempts
        WHERE vendor != '' AND at >= toStartOfDay({to:DateTime64(3)}) AND at < {to:DateTime64(3)}
            AND ({network:String} = '' OR network = {network:String})
    ) AS c
    GROUP BY ago
) AS d
LIMIT 1
