-- question: How did heads move?
-- grain: one row per change of an upstream's head on one axis, the newest first
-- param from DateTime64(3) = now-1h: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param before_network String = '': with the other before_…, where a page begins at the instant `to`
-- param before_upstream String = '': see before_network
-- param before_axis String = '': see before_network
-- param before_number UInt64 = 0: see before_network
-- param before_hash String = '': see before_network
-- param before_event_id String = '': see before_network
-- param network String = '': only this network; empty = all
-- param upstream String = '': only this upstream; empty = all
-- param axis String = '': latest, safe or finalized; empty = all
-- param limit UInt32 = 100: most rows
-- column at DateTime64(3, 'UTC') [UTC]: when it was seen
-- column network String: chain
-- column upstream String: whose head
-- column axis String: latest, safe or finalized
-- column number UInt64 [block]: the head
-- column hash String: of the block; empty = not known
-- column parent_hash String: of the block before it
-- column source String: poll, subscription or response
-- column event_id String: of its event
SELECT
    at,
    network,
    upstream,
    axis,
    number,
    hash,
    parent_hash,
    source,
    event_id
FROM gnomon.heads
WHERE at >= {from:DateTime64(3)} AND at <= {to:DateTime64(3)}
    AND (at, network, upstream, axis, number, hash, event_id)
        < ({to:DateTime64(3)}, {before_network:String}, {before_upstream:String}, {before_axis:String},
            {before_number:UInt64}, {before_hash:String}, {before_event_id:String})
    AND ({network:String} = '' OR network = {network:String})
    AND ({upstream:String} = '' OR upstream = {upstream:String})
    AND ({axis:String} = '' OR axis = {axis:String})
ORDER BY at DESC, network DESC, upstream DESC, axis DESC, number DESC, hash DESC, event_id DESC
LIMIT {limit:UInt32}
