-- How far each log is stored, and when its sink last said so. log_end, dropped: the log's own end and its count of dropped
-- events at that time.
CREATE VIEW IF NOT EXISTS gnomon.progress
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    log_id,
    topic,
    part AS partition,
    CAST(max(p.at), 'DateTime64(3, \'UTC\')') AS at,
    CAST(max(p.next), 'UInt64') AS next,
    CAST(max(p.log_end), 'UInt64') AS log_end,
    CAST(max(p.dropped), 'UInt64') AS dropped
FROM gnomon_core.sink_progress AS p
GROUP BY log_id, topic, part
