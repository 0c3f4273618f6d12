-- One generic path of a pair, after masks.
CREATE VIEW IF NOT EXISTS gnomon.findings
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    request_id,
    network,
    method,
    shadow_upstream,
    path,
    generic_path,
    n_paths,
    class,
    primary_value,
    shadow_value
FROM gnomon_core.findings
