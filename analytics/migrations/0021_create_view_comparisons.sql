-- One pair of answers and its verdict.
CREATE VIEW IF NOT EXISTS gnomon.comparisons
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    at,
    request_id,
    network,
    method,
    primary_upstream,
    shadow_upstream,
    outcome,
    class,
    finality,
    settled,
    suspect,
    block_number,
    is_emptyish,
    is_larger,
    primary_hash,
    shadow_hash,
    primary_duration_us,
    shadow_duration_us,
    mask_version,
    tolerance_version,
    n_findings
FROM gnomon_core.comparisons
