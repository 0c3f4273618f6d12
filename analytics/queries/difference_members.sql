-- question: What do the pairs of one difference have in common, against all other pairs of the method and shadow?
-- grain: one row per member of a pair and value of it
-- param from DateTime64(3) = now-7d: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param network String: chain
-- param method String: JSON-RPC method
-- param shadow String: the shadow
-- param generic_path String: where, without indexes
-- param class String: what kind of difference
-- param finality String = 'finalized': only pairs of this finality; empty = all
-- param outcome String = '': of the pairs that have it, only those with this outcome; the rest of them is in no count; empty = all
-- column member String: user, primary, distance to head, size of the answer, masks
-- column value String: its value
-- column n_these UInt64 [pairs]: pairs that have the difference and this value
-- column n_others UInt64 [pairs]: other judged pairs with this value
-- column these_ratio Float64 [0 to 1]: of the pairs that have the difference
-- column others_ratio Nullable(Float64) [0 to 1]: of the others; NULL where there are none
SELECT member, value, n_these, n_others, these_ratio, others_ratio
FROM
(
    -- Shares are of all values; those that none of these pairs has are left out behind it.
    SELECT
        member,
        value,
        countIf(is_this) AS n_these,
        countIf(NOT is_this) AS n_others,
        n_these / greatest(sum(countIf(is_this)) OVER (PARTITION BY member), 1) AS these_ratio,
        n_others / nullIf(sum(countIf(NOT is_this)) OVER (PARTITION BY member), 0) AS others_ratio
    FROM
    (
        SELECT is_this, pair.1 AS member, pair.2 AS value
        FROM
        (
            SELECT
                request_id IN
                (
                    SELECT f.request_id AS request_id
                    FROM gnomon.findings AS f
                    WHERE f.at >= {from:DateTime64(3)} AND f.at < {to:DateTime64(3)}
                        AND f.network = {network:String} AND f.method = {method:String} AND f.shadow_upstream = {shadow:String}
                        AND f.generic_path = {generic_path:String} AND f.class = {class:String}
                ) AS is_this,
                arrayJoin([
                    ('user', if(user = '', 'none named', user)),
                    ('primary', primary_upstream),
                    ('distance to head', multiIf(
                        isNull(block_number) OR isNull(head_latest), 'not known',
                        head_latest < block_number + 3, 'newest 3 blocks',
                        head_latest < block_number + 64, 'to 63 blocks',
                        head_latest < block_number + 1024, 'to 1,023 blocks',
                        '1,024 blocks and more')),
                    ('size of the answer', multiIf(
                        primary_bytes < 1000, 'below 1 KB',
                        primary_bytes < 10000, '1 to 10 KB',
                        primary_bytes < 100000, '10 to 100 KB',
                        '100 KB and more')),
                    ('masks', if(mask_version = '', 'none', mask_version))
                ]) AS pair
            FROM gnomon.comparisons
            WHERE at >= {from:DateTime64(3)} AND at < {to:DateTime64(3)}
                AND network = {network:String} AND method = {method:String} AND shadow_upstream = {shadow:String}
                AND ({finality:String} = '' OR finality = {finality:String})
                AND (outcome IN ('identical', 'identical_masked', 'tolerated', 'mismatch'))
                AND ({outcome:String} = '' OR outcome = {outcome:String} OR NOT is_this)
        )
    )
    GROUP BY member, value
)
WHERE n_these > 0
ORDER BY these_ratio - ifNull(others_ratio, 0) DESC, member, value
LIMIT 100
