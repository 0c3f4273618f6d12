-- What only the machine of a service can see: its log on disk, its clock.
CREATE VIEW IF NOT EXISTS gnomon.gauges
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT at, name, subject, value
FROM gnomon_core.gauges
