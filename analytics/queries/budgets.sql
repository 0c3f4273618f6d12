-- question: What has each account spent of its month's budget, how fast, and where will it end?
-- grain: one row per account of the configuration
-- param to DateTime64(3) = now: the end of what is counted; the month is the one that it lies in
-- param accounts Array(String) = '[]': accounts; taken from gnomon.pricing.accounts
-- param budgets Array(String) = '[]': their budgets, USD; an empty text = none
-- param cycle_from Array(String) = '[]': the beginning of their month, UTC
-- param cycle_to Array(String) = '[]': the beginning of the next one
-- column account String: account of a vendor; its budget is one pool over methods, upstreams and networks
-- column cycle_from DateTime64(3, 'UTC') [UTC]: the month began
-- column cycle_to DateTime64(3, 'UTC') [UTC]: the next one begins
-- column budget Nullable(Decimal(38, 12)) [USD]: NULL = none
-- column spent Decimal(38, 12) [USD]: in this month; exact
-- column spent_ratio Nullable(Float64) [0 to 1]: of the budget
-- column n_unpriced UInt64 [calls]: calls in no sum, for nobody knows their price
-- column burn_1h Nullable(Float64): spend of the last hour by an hour's even share of the budget; 1 = the budget lasts exactly
-- column burn_6h Nullable(Float64): the same over six whole hours and the one that has begun
-- column burn_24h Nullable(Float64): the same over 24 whole hours and the one that has begun
-- column burn_3d Nullable(Float64): the same over 72
-- column day_usd Float64 [USD/day]: mean of the last whole days since the first call, 14 at most, up to the last whole hour
-- column n_days Int64 [days]: days that mean is made of; 0 = there is none yet, and the pace since the first call is taken
-- column forecast Float64 [USD]: spent, and that mean for the days that are left
-- column forecast_low Nullable(Float64) [USD]: lower end of the 80 % interval, from how much the days differ; NULL below 3 days
-- column forecast_high Nullable(Float64) [USD]: upper end
-- column empty_at Nullable(DateTime64(3, 'UTC')) [UTC]: when the budget will be gone at that mean; `to` = it is gone; NULL = not within the month
WITH
    if(s.n_days > 0, s.day_usd, s.all_usd / greatest(s.first_hour + p.begun, 1) * 24) AS mean,
    [3.078, 1.886, 1.638, 1.533, 1.476, 1.44, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356, 1.35] AS student, -- 0.9 quantile of t by degrees of freedom: few days tell little of how days differ
    student[s.n_days - 1] * s.day_sd * sqrt(p.days_left * (1 + p.days_left / greatest(s.n_days, 1))) AS band
SELECT
    p.account AS account,
    p.cycle_from AS cycle_from,
    p.cycle_to AS cycle_to,
    p.budget AS budget,
    toDecimal128(ifNull(s.spent, 0), 12) AS spent,
    round(toFloat64(spent) / nullIf(toFloat64(budget), 0), 6) AS spent_ratio,
    s.n_unpriced AS n_unpriced,
    round(s.usd_1h / p.even, 4) AS burn_1h,
    round(s.usd_6h / (6 + p.begun) / p.even, 4) AS burn_6h,
    round(s.usd_24h / (24 + p.begun) / p.even, 4) AS burn_24h,
    round(s.usd_72h / (72 + p.begun) / p.even, 4) AS burn_3d,
    round(mean, 6) AS day_usd,
    s.n_days AS n_days,
    round(toFloat64(spent) + mean * days_left, 6) AS forecast,
    if(n_days >= 3, round(greatest(forecast - band, toFloat64(spent)), 6), NULL) AS forecast_low,
    if(n_days >= 3, round(forecast + band, 6), NULL) AS forecast_high,
    toTimeZone(multiIf(isNull(budget), NULL, spent > 0 AND spent >= budget, {to:DateTime64(3)},
        mean = 0 OR forecast < toFloat64(budget), NULL,
        {to:DateTime64(3)} + toIntervalSecond(toInt64((toFloat64(budget) - toFloat64(spent)) / mean * 86400))), 'UTC') AS empty_at
FROM
(
    SELECT
        a.1 AS account,
        toDecimal128OrNull(a.2, 12) AS budget,
        toDateTime64(a.3, 3, 'UTC') AS cycle_from,
        toDateTime64(a.4, 3, 'UTC') AS cycle_to,
        dateDiff('millisecond', {to:DateTime64(3)}, cycle_to) / 86400000 AS days_left,
        dateDiff('millisecond', toStartOfHour({to:DateTime64(3)}), {to:DateTime64(3)}) / 3600000 AS begun,
        toFloat64(nullIf(budget, 0)) / (dateDiff('second', cycle_from, cycle_to) / 3600) AS even
    FROM
    (
        SELECT arrayJoin(arrayZip({accounts:Array(String)}, {budgets:Array(String)}, {cycle_from:Array(String)},
            {cycle_to:Array(String)})) AS a
    ) AS known
) AS p
LEFT JOIN
(
    SELECT
        account,
        sum(d.spent) AS spent,
        sum(d.n_unpriced) AS n_unpriced,
        sum(d.usd_1h) AS usd_1h,
        sum(d.usd_6h) AS usd_6h,
        sum(d.usd_24h) AS usd_24h,
        sum(d.usd_72h) AS usd_72h,
        any(d.since) AS first_hour,
        sum(d.usd) AS all_usd,
        least(14, intDiv(first_hour, 24)) AS n_days,
        sumIf(d.usd, ago >= 0 AND ago < least(14, intDiv(d.since, 24))) / greatest(n_days, 1) AS day_usd,
        sqrt(greatest(0, (sumIf(d.usd * d.usd, ago >= 0 AND ago < least(14, intDiv(d.since, 24))) - n_days * day_usd * day_usd)
            / greatest(n_days - 1, 1)))
            AS day_sd
    FROM
    (
        SELECT
            c.account AS account,
            if(c.at < toStartOfHour({to:DateTime64(3)}),
                intDiv(dateDiff('hour', toStartOfHour(c.at), toStartOfHour({to:DateTime64(3)})) - 1, 24), -1) AS ago,
            max(max(dateDiff('hour', toStartOfHour(c.at), toStartOfHour({to:DateTime64(3)})))) OVER (PARTITION BY c.account) AS since,
            toFloat64(ifNull(sum(c.usd), 0)) AS usd,
            sumIf(c.usd, c.at >= k.cycle_from) AS spent,
            sumIf(c.n_unpriced, c.at >= k.cycle_from) AS n_unpriced,
            toFloat64(ifNull(sumIf(c.usd, c.at >= {to:DateTime64(3)} - INTERVAL 1 HOUR), 0)) AS usd_1h,
            toFloat64(ifNull(sumIf(c.usd, c.at >= toStartOfHour({to:DateTime64(3)}) - INTERVAL 6 HOUR), 0)) AS usd_6h,
            toFloat64(ifNull(sumIf(c.usd, c.at >= toStartOfHour({to:DateTime64(3)}) - INTERVAL 24 HOUR), 0)) AS usd_24h,
            toFloat64(ifNull(sumIf(c.usd, c.at >= toStartOfHour({to:DateTime64(3)}) - INTERVAL 72 HOUR), 0)) AS usd_72h
        FROM
        (
            SELECT account, hour AS at, usd, n_unpriced
            FROM gnomon.spend_hourly
            WHERE hour >= toStartOfHour({to:DateTime64(3)}) - INTERVAL 32 DAY AND hour < toStartOfHour({to:DateTime64(3)}) - INTERVAL 1 HOUR
                AND has({accounts:Array(String)}, account)
            UNION ALL
            SELECT account, at, usd, toUInt64(isNull(usd)) AS n_unpriced
            FROM gnomon.attempts
            WHERE at >= toStartOfHour({to:DateTime64(3)}) - INTERVAL 1 HOUR AND at < {to:DateTime64(3)}
                AND has({accounts:Array(String)}, account)
        ) AS c
        INNER JOIN
        (
            SELECT b.1 AS account, toDateTime64(b.2, 3, 'UTC') AS cycle_from
            FROM (SELECT arrayJoin(arrayZip({accounts:Array(String)}, {cycle_from:Array(String)})) AS b) AS known
        ) AS k ON k.account = c.account
        GROUP BY c.account, ago
    ) AS d
    GROUP BY account
) AS s ON s.account = p.account
ORDER BY spent_ratio DESC NULLS LAST, account
LIMIT 1000
