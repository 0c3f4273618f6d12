"""
A named question with the parameters of a request: what is bound, what comes back, where the next page begins.

Routes and pages ask here and nowhere else, so that a number is the same wherever it stands.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from analytics import accounts
from analytics.questions import Question, load
from api import cursors, values
from api.cursors import Cursor
from api.errors import Refused
from api.reader import Asks
from gnomon.config.model import Account

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class Rows:
    """The answer to a question."""

    question: Question
    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    """Python values: exact decimals, aware times."""
    start: datetime | None
    """`from` as it was understood; None where the question has none."""
    end: datetime | None
    """`to`, not included."""
    next_cursor: str | None = None
    is_complete: bool = True
    """False where the question's own limit may have left rows out."""

    def items(self) -> list[dict[str, values.Json]]:
        """Return the rows as JSON has them."""
        return values.rows(self.names, self.types, self.rows)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows by name, as Python values."""
        return [dict(zip(self.names, row, strict=True)) for row in self.rows]

    def document(self) -> dict[str, values.Json]:
        """Return the answer of a collection."""
        said: dict[str, values.Json] = {"items": self.items(), "next_cursor": self.next_cursor}
        if self.start is not None:
            said["from"] = values.moment(self.start)
        if self.end is not None:
            said["to"] = values.moment(self.end)
        if self.question.most_rows is not None:
            said["is_complete"] = self.is_complete
        return said


class Asking:
    """Asks named questions."""

    def __init__(
        self,
        reader: Asks,
        known_accounts: Callable[[], Sequence[Account]] = tuple,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """
        Args:
            reader: asks ClickHouse.
            known_accounts: those of the configuration in force.
            now: what `now` means.
        """
        self._reader = reader
        self._accounts = known_accounts
        self._now = now

    def now(self) -> datetime:
        """Return what `now` means."""
        return self._now()

    async def ask(self, name: str, given: Mapping[str, str] | None = None) -> Rows:
        """
        Return the answer to a question, all of it.

        Args:
            name: of `analytics/queries`.
            given: parameters as a user writes them; the rest take their defaults.

        Raises:
            BadParameter: one does not fit.
            Refused: an empty range; ClickHouse too busy or too slow.
            StoreError: ClickHouse refuses, or it is away.
        """
        question, bound, start, end = self._bind(name, given or {})
        result = await self._reader.query(question.sql, bound)
        is_complete = question.most_rows is None or len(result.rows) < question.most_rows
        return Rows(question, result.names, result.types, result.rows, start, end, None, is_complete)

    async def page(self, name: str, given: Mapping[str, str], *, limit: int, cursor: str | None) -> Rows:
        """
        Return a page of the answer to a question that is read page by page.

        Args:
            name: of such a question.
            given: as in `ask`, without the limit.
            limit: most rows of the page, 1 to `MAX_LIMIT`.
            cursor: `next_cursor` of the page before; None is the first.

        Raises:
            as `ask`; Refused also for a cursor that is none of this question with these parameters.
        """
        question, bound, start, end = self._bind(name, given)
        if cursor is not None:
            key = question.page_key
            place = cursors.decode(cursor, name, given, 1 + len(key))
            start, end = _time(place.start), _time(place.end)
            bound |= {"from": place.start, "to": place.key[0]}
            bound |= {f"before_{column}": value for column, value in zip(key, place.key[1:], strict=True)}
        bound["limit"] = str(limit + 1)
        result = await self._reader.query(question.sql, bound)
        rows = result.rows[:limit]
        assert start is not None  # a question with pages has a range
        assert end is not None
        more = None
        if len(result.rows) > limit:
            last = dict(zip(result.names, rows[-1], strict=True))
            here = Cursor(_text(start), _text(end), (_text(last["at"]), *(str(last[c]) for c in question.page_key)))
            more = cursors.encode(here, name, given)
        return Rows(question, result.names, result.types, rows, start, end, more)

    def _bind(
        self, name: str, given: Mapping[str, str]
    ) -> tuple[Question, dict[str, str | list[str]], datetime | None, datetime | None]:
        question = load(name)
        now = self._now()
        now = now.replace(microsecond=now.microsecond // 1000 * 1000)
        start, end = (question.moment(side, given, now) for side in ("from", "to"))
        if start is not None and end is not None and start >= end:
            raise Refused(
                "invalid-range",
                f"from {values.moment(start)} is not before to {values.moment(end)}; to is not included",
                errors=[{"parameter": "from", "detail": "must lie before `to`"}],
            )
        configured = accounts.bindings(self._accounts(), end or now)
        return question, question.bind(given, now, configured), start, end


def _text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
