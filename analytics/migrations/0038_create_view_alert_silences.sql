-- Silences of alerts, as they are in force.
CREATE VIEW IF NOT EXISTS gnomon.alert_silences
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    max(s.at) AS at,
    silence_id,
    argMax(s.rule, s.at) AS rule,
    argMax(s.subject, s.at) AS subject,
    argMax(s.starts_at, s.at) AS starts_at,
    argMax(s.ends_at, s.at) AS ends_at,
    argMax(s.comment, s.at) AS comment,
    argMax(s.author, s.at) AS author
FROM gnomon_core.alert_silences AS s
GROUP BY silence_id
