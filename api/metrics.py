"""What the API counts, in Prometheus' text form: one closed list, bounded labels (routes, never addresses)."""

from typing import Final

from gnomon.exposition import Definition, Values

DEFINITIONS: Final[tuple[Definition, ...]] = (
    Definition("gnomon_api_requests_total", "counter", ("route", "method", "status"),
               "Requests by route, as /openapi.json has it (_OTHER: no such route), and HTTP status."),
    Definition("gnomon_api_request_seconds_total", "counter", ("route", "method"),
               "Time spent on requests; the mean is this by gnomon_api_requests_total."),
    Definition("gnomon_api_problems_total", "counter", ("problem",), "Refusals, by the end of their `type`."),
    Definition("gnomon_api_in_flight", "gauge", (), "Requests under way, streams included."),
    Definition("gnomon_api_queries_waiting", "gauge", (), "Questions that ClickHouse is asked, or that wait for it."),
    Definition("gnomon_api_sql_statements_total", "counter", ("end",),
               "Statements of POST /v1/sql: done, refused, failed behind their first rows, or gone (their client)."),
    Definition("gnomon_api_sql_seconds_total", "counter", ("end",),
               "Time spent on them, waits and reading included; the mean is this by gnomon_api_sql_statements_total."),
    Definition("gnomon_api_sql_refused_total", "counter", ("problem",), "Those refused, by the end of their `type`."),
    Definition("gnomon_api_sql_running", "gauge", (), "Statements that run now."),
    Definition("gnomon_api_streams", "gauge", (), "Live streams that are open; `gnomon.api.limits.streams` at most."),
    Definition("gnomon_api_streams_ended_total", "counter", ("reason",),
               "Live streams that ended: gone (its client), slow (it took nothing), old, revoked (token), shutdown."),
    Definition("gnomon_api_stream_changes_total", "counter", ("kind",),
               "Changes that listeners were told, each counted once."),
    Definition("gnomon_api_stream_looks_total", "counter", ("result",),
               "Looks for what is new while somebody listens: ok, or failed (ClickHouse did not answer)."),
    Definition("gnomon_api_config_reloads_total", "counter", ("result",),
               "Reloads of the configuration: ok, or invalid (the old one stays)."),
)  # fmt: skip


class Metrics(Values):
    """The API's values."""

    def __init__(self) -> None:
        super().__init__(DEFINITIONS)
