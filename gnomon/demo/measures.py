"""What the demonstration asks of ClickHouse while it runs and at its end, through the views that everybody uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

import clickhouse_connect
from clickhouse_connect.driver.exceptions import ClickHouseError

COUNTS: Final = """
SELECT
    (SELECT count() FROM gnomon.requests WHERE at >= {since:DateTime64(3)}) AS requests,
    (SELECT count() FROM gnomon.comparisons WHERE at >= {since:DateTime64(3)}) AS pairs,
    (SELECT count() FROM gnomon.shadow_decisions
     WHERE at >= {since:DateTime64(3)} AND decision = 'mirrored') AS mirrored,
    (SELECT count() FROM gnomon.comparisons WHERE at >= {since:DateTime64(3)} AND outcome = 'mismatch') AS mismatches,
    (SELECT count() FROM gnomon.comparisons
     WHERE at >= {since:DateTime64(3)} AND outcome = 'mismatch' AND finality = 'finalized') AS final_mismatches,
    (SELECT count() FROM gnomon.attempts
     WHERE at >= {since:DateTime64(3)} AND tier = 'fallback' AND request_id != '') AS paid_calls
"""

VERDICTS: Final = """
SELECT outcome, class, finality, count() AS n
FROM gnomon.comparisons WHERE at >= {since:DateTime64(3)}
GROUP BY outcome, class, finality ORDER BY n DESC, outcome, class, finality LIMIT 100
"""

DECISIONS: Final = """
SELECT decision, count() AS n
FROM gnomon.shadow_decisions WHERE at >= {since:DateTime64(3)}
GROUP BY decision ORDER BY n DESC, decision LIMIT 20
"""

FINDINGS: Final = """
SELECT
    f.method AS method, f.generic_path AS generic_path, f.class AS class, count() AS n,
    any(f.path) AS path, any(f.primary_value) AS primary_value, any(f.shadow_value) AS shadow_value
FROM gnomon.findings AS f
INNER JOIN (
    SELECT request_id, shadow_upstream FROM gnomon.comparisons
    WHERE at >= {since:DateTime64(3)} AND outcome = 'mismatch'
) AS c ON f.request_id = c.request_id AND f.shadow_upstream = c.shadow_upstream
WHERE f.at >= {since:DateTime64(3)}
GROUP BY method, generic_path, class ORDER BY n DESC, method, generic_path, class LIMIT 200
"""

PAID: Final = """
SELECT upstream, vendor, kind, cause, count() AS n, sum(usd) AS usd, countIf(NOT is_priced) AS n_unpriced
FROM gnomon.attempts WHERE at >= {since:DateTime64(3)} AND tier = 'fallback'
GROUP BY upstream, vendor, kind, cause ORDER BY kind, n DESC, cause LIMIT 50
"""

OUTCOMES: Final = """
SELECT outcome, count() AS n FROM gnomon.requests WHERE at >= {since:DateTime64(3)}
GROUP BY outcome ORDER BY n DESC, outcome LIMIT 20
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """How far the pipeline is."""

    requests: int = 0
    pairs: int = 0
    mirrored: int = 0
    mismatches: int = 0
    final_mismatches: int = 0
    paid_calls: int = 0


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything the summary speaks of."""

    counts: Counts
    outcomes: Sequence[Mapping[str, Any]]
    decisions: Sequence[Mapping[str, Any]]
    verdicts: Sequence[Mapping[str, Any]]
    findings: Sequence[Mapping[str, Any]]
    paid: Sequence[Mapping[str, Any]]

    @property
    def paid_usd(self) -> Decimal:
        """All that the fallback cost, head polls included."""
        return sum((Decimal(row["usd"]) for row in self.paid if row["usd"] is not None), Decimal(0))


class NotReadable(Exception):
    """ClickHouse does not answer, or not yet with our tables."""


class Measures:
    """
    Reads the views over HTTP; every method blocks.

    Args:
        url: of ClickHouse.
        since: rows before it are left out (UTC).
    """

    def __init__(self, url: str, since: datetime) -> None:
        parts = urlsplit(url)
        self._parameters = {"since": since}
        try:
            self._client = clickhouse_connect.get_client(
                host=parts.hostname,
                port=parts.port or 8123,
                database="gnomon",
                autogenerate_session_id=False,
                connect_timeout=5,
                send_receive_timeout=10,
            )
        except (ClickHouseError, OSError) as exc:
            raise NotReadable(str(exc)) from exc

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """
        Return the rows of a query that binds `since`.

        Raises:
            NotReadable: ClickHouse refuses, or does not answer.
        """
        try:
            return list(self._client.query(sql, parameters=self._parameters).named_results())
        except (ClickHouseError, OSError) as exc:
            raise NotReadable(str(exc)) from exc

    def counts(self) -> Counts:
        """Return how far the pipeline is."""
        return Counts(**self.rows(COUNTS)[0])

    def all(self) -> Findings:
        """Return what the summary needs."""
        return Findings(
            counts=self.counts(),
            outcomes=self.rows(OUTCOMES),
            decisions=self.rows(DECISIONS),
            verdicts=self.rows(VERDICTS),
            findings=self.rows(FINDINGS),
            paid=self.rows(PAID),
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
