-- question: Where were blocks replaced?
-- grain: one row per reorg that an upstream showed, the newest first
-- param from DateTime64(3) = now-7d: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param before_network String = '': with the other before_…, where a page begins at the instant `to`
-- param before_upstream String = '': see before_network
-- param before_number UInt64 = 0: see before_network
-- param before_new_hash String = '': see before_network
-- param before_event_id String = '': see before_network
-- param network String = '': only this network; empty = all
-- param upstream String = '': only this upstream; empty = all
-- param limit UInt32 = 100: most rows
-- column at DateTime64(3, 'UTC') [UTC]: when it was seen
-- column network String: chain
-- column upstream String: where
-- column number UInt64 [block]: the lowest block that was replaced
-- column depth UInt32 [blocks]: how many were
-- column old_hash String: of the block before
-- column new_hash String: of the block that took its place
-- column event_id String: of its event
SELECT
    at,
    network,
    upstream,
    number,
    depth,
    old_hash,
    new_hash,
    event_id
FROM gnomon.reorgs
WHERE at >= {from:DateTime64(3)} AND at <= {to:DateTime64(3)}
    AND (at, network, upstream, number, new_hash, event_id)
        < ({to:DateTime64(3)}, {before_network:String}, {before_upstream:String}, {before_number:UInt64},
            {before_new_hash:String}, {before_event_id:String})
    AND ({network:String} = '' OR network = {network:String})
    AND ({upstream:String} = '' OR upstream = {upstream:String})
ORDER BY at DESC, network DESC, upstream DESC, number DESC, new_hash DESC, event_id DESC
LIMIT {limit:UInt32}
