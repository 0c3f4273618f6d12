-- Runs of `gnomon rebuild --prices`; NULL in done_at: under way, or killed (the next run finishes its rollups).
CREATE VIEW IF NOT EXISTS gnomon.repricings
DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
SELECT
    r.run AS run,
    min(r.at) AS at,
    if(max(r.is_done), max(r.at), NULL) AS done_at,
    argMax(r.begins_at, r.at) AS begins_at,
    argMax(r.ends_at, r.at) AS ends_at,
    argMax(r.n, r.at) AS n,
    argMax(r.n_changed, r.at) AS n_changed,
    argMax(r.usd_before, r.at) AS usd_before,
    argMax(r.usd_after, r.at) AS usd_after,
    argMax(r.books, r.at) AS books
FROM gnomon_core.repricings AS r
GROUP BY run
