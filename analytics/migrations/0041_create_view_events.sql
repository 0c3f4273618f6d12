-- One stored event, in the table where it is at home; proc and seq: which process numbered it how (a gap shows a loss), proc is
-- empty where the event says no such number. partition, offset: where its log had it. Dead letters are among them.
CREATE VIEW IF NOT EXISTS gnomon.events
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    type,
    event_id,
    if(match(event_id, '^[0-9a-f]{16}:[0-9]{1,19}$'), substring(event_id, 1, 16), '') AS proc,
    toUInt64OrZero(substring(event_id, 18)) AS seq,
    topic,
    part AS partition,
    off AS offset
FROM
(
    SELECT at, 'primary_response' AS type, event_id, topic, part, off FROM gnomon_core.requests
    UNION ALL SELECT at, 'shadow_response', event_id, topic, part, off FROM gnomon_core.comparisons WHERE topic != 'missing'
    UNION ALL SELECT at, 'attempt', event_id, topic, part, off FROM gnomon_core.attempts WHERE attempt_id != ''
    UNION ALL SELECT at, 'head_update', event_id, topic, part, off FROM gnomon_core.heads
    UNION ALL SELECT at, 'reorg', event_id, topic, part, off FROM gnomon_core.reorgs
    UNION ALL SELECT at, 'breaker_transition', event_id, topic, part, off FROM gnomon_core.breaker_transitions
    UNION ALL
    SELECT event_at, 'dead_letter', extract(bytes, '"event_id"\\s*:\\s*"([0-9a-f]{16}:[0-9]{1,19})"'), topic, part, off
    FROM gnomon_core.dead_letters
)
