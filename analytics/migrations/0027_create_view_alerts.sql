-- Changes of alerts.
CREATE VIEW IF NOT EXISTS gnomon.alerts
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    rule,
    state,
    subject,
    value,
    threshold,
    delivered
FROM gnomon_core.alerts
