-- Changes of alerts. delivered: every receiver of the change has it; false where there was none, or a silence.
CREATE OR REPLACE VIEW gnomon.alerts
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    a.at AS at,
    a.rule AS rule,
    a.state AS state,
    a.subject AS subject,
    a.value AS value,
    a.threshold AS threshold,
    toBool(a.delivered OR d.n_receivers > 0 AND d.n_receivers = d.n_delivered) AS delivered
FROM gnomon_core.alerts AS a
LEFT JOIN
(
    SELECT changed_at, fingerprint, state, uniqExact(receiver) AS n_receivers, uniqExactIf(receiver, is_delivered) AS n_delivered
    FROM gnomon_core.alert_deliveries
    GROUP BY changed_at, fingerprint, state
) AS d ON d.changed_at = a.at AND d.fingerprint = a.fingerprint AND d.state = a.state
WHERE a.state IN ('firing', 'resolved')
