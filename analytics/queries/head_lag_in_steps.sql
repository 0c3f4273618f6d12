-- question: How far was each upstream behind, step by step?
-- grain: one row per network, upstream and step in which something was heard of it
-- param from DateTime64(3) = now-3h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String = '': only this network; empty = all
-- param axis String = 'latest': latest, safe or finalized
-- param step UInt32 = 60: seconds of a step, at least 1; steps are counted from the start of the range
-- column network String: chain
-- column upstream String: whose head
-- column step UInt64: number of the step; 0 begins at `from`
-- column number UInt64 [block]: its highest up to the end of the step
-- column lag_blocks UInt64 [blocks]: behind the highest of all upstreams up to the end of the step
-- column is_heard Bool: its head moved in the step, or it answered when it was asked for it; else it is not known
-- column block_seconds Nullable(Float64) [s]: between blocks: of the chain where it is known, else over the range; by it lag is time
WITH
    toUInt64(greatest({step:UInt32}, 1)) AS seconds,
    toUInt64(ceil(dateDiff('millisecond', {from:DateTime64(3)}, {to:DateTime64(3)}) / 1000 / seconds)) AS n_steps,
    -- Fewer than ten blocks tell no pace.
    if(n_blocks >= 10, round(n_between * seconds / n_blocks, 2), NULL) AS measured_seconds
SELECT
    network,
    upstream,
    step,
    number,
    toUInt64(best - number) AS lag_blocks,
    toBool(is_heard) AS is_heard,
    transform(network,
        ['evm:1', 'evm:10', 'evm:56', 'evm:100', 'evm:137', 'evm:8453', 'evm:42161', 'evm:11155111', 'evm:17000', 'evm:560048'],
        [12., 2., 0.75, 5., 2., 2., 0.25, 12., 12., 12.],
        nullIf(measured_seconds, 0)) AS block_seconds
FROM
(
    SELECT
        network,
        upstream,
        step,
        number,
        is_heard,
        best,
        max(best) OVER of_network - min(best) OVER of_network AS n_blocks,
        max(step) OVER of_network - min(step) OVER of_network AS n_between
    FROM
    (
        SELECT network, upstream, step, number, is_heard, max(number) OVER (PARTITION BY network, step) AS best
        FROM
        (
            SELECT
                network,
                upstream,
                step,
                max(max_number) OVER (PARTITION BY network, upstream ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS number,
                heard AS is_heard
            FROM
            (
                SELECT network, upstream, step, max(moved) AS max_number, toUInt8(max(heard_in)) AS heard
                FROM
                (
                    SELECT network, upstream, arrayJoin(range(n_steps)) AS step, toUInt64(0) AS moved, toUInt8(0) AS heard_in
                    FROM
                    (
                        SELECT DISTINCT network, upstream
                        FROM gnomon.heads
                        WHERE axis = {axis:String} AND at >= {from:DateTime64(3)} - INTERVAL 1 HOUR AND at < {to:DateTime64(3)}
                            AND ({network:String} = '' OR network = {network:String})
                    )
                    UNION ALL
                    SELECT network, upstream,
                        toUInt64(greatest(intDiv(dateDiff('second', {from:DateTime64(3)}, at), toInt64(seconds)), 0)),
                        number, toUInt8(at >= {from:DateTime64(3)})
                    FROM gnomon.heads
                    WHERE axis = {axis:String} AND at >= {from:DateTime64(3)} - INTERVAL 1 HOUR AND at < {to:DateTime64(3)}
                        AND ({network:String} = '' OR network = {network:String})
                    UNION ALL
                    SELECT network, upstream, toUInt64(intDiv(dateDiff('second', {from:DateTime64(3)}, at), toInt64(seconds))), toUInt64(0), toUInt8(1)
                    FROM gnomon.attempts
                    WHERE kind = 'head_poll' AND outcome = 'result'
                        AND at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
                        AND ({network:String} = '' OR network = {network:String})
                )
                WHERE step < n_steps
                GROUP BY network, upstream, step
            )
        )
        WHERE number > 0
    )
    WINDOW of_network AS (PARTITION BY network)
)
ORDER BY network, upstream, step
LIMIT 100000
