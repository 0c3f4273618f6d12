"""
History priced again: read the groups of each day, change what is charged otherwise now, align the rollup.

    1. become the owner of the fence; wait until the changes of a killed run are through
    2. for some days at a time: read → change (one mutation) → read again until nothing differs → align the rollup
    3. days whose calls came meanwhile once more; what is charged otherwise still is told

Killed anywhere, it is run again: what was changed does not differ any more, and aligning looks at the sums, not at what
was done. Ranges of runs that never ended are aligned too, whatever the range of this one. Memory is that of the groups,
which are some thousand, however many calls there are. New calls are stored meanwhile by whoever stores them: changes
touch no row that comes later, and the rollup is compared with the calls that went into it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar

from gnomon.cost.charge import Charge, Charger, text_of
from gnomon.errors import GnomonError
from ingest.engine import Engine, Mark, literal
from ingest.errors import EngineAway, Fenced
from ingest.repricing import aligning, changing
from ingest.repricing.calls import Calls, Difference, Differences, Keys, calls, paid_calls
from ingest.sink import EPOCH_RANDOM_BITS, MAX_ROWS_PER_INSERT, claim
from ingest.tables import DATABASE, SPEND_HOURLY

T = TypeVar("T")

FENCE = ("repricing", "prices", 0)
"""Who may change prices: one run at a time."""
REBUILT = "gnomon_rebuild"
TRIES = 50
SALT_BITS = 8
PASSES = 5
DAYS_PER_CHANGE = 400
"""
A change touches every part of the table, if only to see that none of its calls is meant, and the embedded engine does
some eight a second: so one for all days of a year.
"""
_RETRY_SECONDS = 0.2
_POLL_SECONDS = 0.05


class RepricingError(GnomonError):
    """History cannot be priced again now."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run is."""

    day: date
    n_days_done: int
    n_days: int
    n_calls: int
    n_changed: int
    n_parts_left: int = 0
    """Of the table of calls, which are still to be changed; 0 while calls are read and sums aligned."""


@dataclass(slots=True)
class Outcome:
    """What a run has found, and done."""

    differences: list[Difference] = field(default_factory=list)
    n_days: int = 0
    n_late: int = 0
    """Calls that came meanwhile and were charged by other books."""
    n_left: int = 0
    """Groups of the rollup whose calls are not kept: as they were."""
    run: int = 0
    """Its number; 0 = nothing was written."""


@dataclass(slots=True)
class _Read:
    """What was read of some days."""

    keys: Keys
    differences: Differences = field(default_factory=Differences)
    prices: dict[int, Charge] = field(default_factory=dict)
    """Hash → what each such call costs now, where that is not what it is charged."""
    days: list[date] = field(default_factory=list)
    """Those with such calls."""


class Repricing:
    """One run."""

    def __init__(
        self,
        engine: Engine,
        charger: Charger,
        begin: datetime | None,
        end: datetime,
        *,
        report: Callable[[Progress], None] = lambda progress: None,
        at_step: Callable[[str], None] = lambda step: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """
        Args:
            engine: a connection with the writer's rights.
            charger: of the books of now.
            begin, end: aware, the end is not in it; None: from the oldest call that is kept.
            report: is told each day.
            at_step: is told each step before it is done (tests die there).
            now: the clock of what is written about the run.
        """
        self._engine = engine
        self._charger = charger
        self._begin = begin or datetime(1970, 1, 1, tzinfo=UTC)
        self._end = end
        self._report = report
        self._at_step = at_step
        self._now = now
        self._mark: Mark | None = None
        self._run = 0
        self._left: dict[date, int] = {}
        self._progress: Progress | None = None

    def look(self) -> Outcome:
        """Return the differences; nothing is written."""
        days = self._days()
        read = self._read(days, 0, len(days), Differences())
        return Outcome(read.differences.rows(), len(days))

    def run(self) -> Outcome:
        """
        Price the range again.

        Raises:
            Fenced: another run has begun.
            EngineAway, EngineRefused, RepricingError: some days are done; run it again.
        """
        if self._engine.rows(f"SELECT 1 FROM system.databases WHERE name = '{REBUILT}'"):
            raise RepricingError(
                f"database {REBUILT} is there: `gnomon rebuild` is at work, or was interrupted (then run it again)"
            )
        self._at_step("claim")
        self._again(self._own)
        self._run = self._owner().epoch >> EPOCH_RANDOM_BITS
        started_at = self._now()
        days, unfinished = self._days(), self._unfinished()
        found = Differences()
        self._note(is_done=False, differences=[])
        for first in range(0, len(days), DAYS_PER_CHANGE):
            some = days[first : first + DAYS_PER_CHANGE]
            self._again(self._stay_owner)
            self._price(some, found, first, len(days))
            self._align_all(some)
            self._note(is_done=False, differences=found.rows())
        self._align_all(sorted(unfinished.difference(days)))
        n_late = self._latecomers(started_at)
        self._again(self._stay_owner)
        differences = found.rows()
        self._at_step("done")
        self._again(lambda: self._engine.command(f"TRUNCATE TABLE {DATABASE}.{changing.PRICES_TABLE}"))
        self._note(is_done=True, differences=differences)
        return Outcome(differences, len(days), n_late, sum(self._left.values()), self._run)

    # --- some days ----------------------------------------------------------------------------------------------------

    def _price(self, days: Sequence[date], found: Differences, n_done: int = 0, n_days: int = 0) -> int:
        """Read the groups of days, change them, and see that nothing differs; return how many calls differed."""
        n_changed = -1
        for _ in range(PASSES):
            read = self._again(lambda: self._read(days, n_done, n_days, found))  # noqa: B023 - not kept
            if n_changed < 0:
                found.update(read.differences)
                n_changed = sum(d.n_changed for d in read.differences.rows())
            if not read.prices:
                break
            days = read.days
            self._at_step("change")
            self._again(lambda: self._change(read))  # noqa: B023 - done before the loop goes on
        return n_changed

    def _read(self, days: Sequence[date], n_done: int, n_days: int, found: Differences) -> "_Read":
        """Return what is to be changed in days, under hashes that tell all calls of other prices apart."""
        salt = self._run << SALT_BITS
        while True:
            read = _Read(Keys.of(self._charger, salt))
            seen: dict[int, tuple[object, ...]] = {}
            is_clear = True
            for index, day in enumerate(days):
                n, n_changed = read.differences.counts
                n_before, n_changed_before = found.counts
                self._progress = Progress(
                    day, min(n_done + index, n_days), n_days, n + n_before, n_changed + n_changed_before
                )
                self._report(self._progress)
                for group in self._groups(read.keys, paid_calls(*self._within(day))):
                    depends_on = _depends_on(group)
                    is_clear = is_clear and seen.setdefault(group.hash, depends_on) == depends_on
                    charge, is_wasted = group.price(self._charger)
                    if read.differences.add(group, charge, is_wasted):
                        read.prices[group.hash] = charge
                        if day not in read.days:
                            read.days.append(day)
            if is_clear:
                return read
            salt += 1

    def _groups(self, keys: Keys, where: str) -> Iterator[Calls]:
        """Yield the groups of some calls."""
        for row in self._engine.rows(keys.groups(where)):
            yield calls(row)

    def _change(self, read: "_Read") -> None:
        mark = self._owner()
        self._engine.command(f"TRUNCATE TABLE {DATABASE}.{changing.PRICES_TABLE}")
        items = list(read.prices.items())
        for start in range(0, len(items), MAX_ROWS_PER_INSERT):
            some = changing.columns(dict(items[start : start + MAX_ROWS_PER_INSERT]))
            self._engine.insert(changing.PRICES_TABLE, changing.PRICES_COLUMNS, some, mark)
        where = paid_calls(self._within(min(read.days))[0], self._within(max(read.days))[1])
        self._engine.command(changing.statement(read.keys, where, self._run, mark))
        self._at_step("wait")
        self._wait_for_changes()

    def _align_all(self, days: Sequence[date]) -> None:
        for day in days:
            self._at_step("align")
            self._again(lambda day=day: self._align(day))  # type: ignore[misc]

    def _align(self, day: date) -> None:
        """Make the rollup's sums of a day those of its calls."""
        of_rollup = self._engine.rows(aligning.rollup(day))
        floors = aligning.floors(of_rollup)
        if not floors:
            return
        rows, n_left = aligning.corrections(of_rollup, self._engine.rows(aligning.calls(day, floors)))
        self._left[day] = n_left
        # All of a day is in one partition, so one block is stored whole or not at all.
        for start in range(0, len(rows), MAX_ROWS_PER_INSERT):
            chosen = rows[start : start + MAX_ROWS_PER_INSERT]
            columns = [*zip(*(c.row for c in chosen), strict=True), *zip(*(c.key for c in chosen), strict=True)]
            columns[-1] = tuple(int(part) for part in columns[-1])
            self._at_step("insert")
            self._engine.insert("spend_hourly", SPEND_HOURLY.wire_columns, columns, self._owner())

    def _latecomers(self, started_at: datetime) -> int:
        """Price again what was stored meanwhile, and return how much of it was charged by other books."""
        days = [day for day in self._days() if self._within(day)[1] >= started_at - timedelta(days=1)]
        n_late = self._price(days, Differences()) if days else 0
        if n_late:
            self._align_all(days)
        return n_late

    # --- owner and engine ---------------------------------------------------------------------------------------------

    def _own(self) -> None:
        self._mark = claim(self._engine, FENCE)
        self._engine.command(changing.PRICES_DDL)
        self._wait_for_changes()

    def _stay_owner(self) -> None:
        """
        See that nobody else has begun a run; a former owner's changes change nothing, so it would go on for nothing.

        Raises:
            Fenced: somebody has.
        """
        mark = self._owner()
        ((epoch,),) = self._engine.rows(f"SELECT max(epoch) FROM {DATABASE}.sink_epochs WHERE {mark.where}")
        if int(epoch) > mark.epoch:
            raise Fenced("another `gnomon rebuild --prices` has begun: this one stops")

    def _owner(self) -> Mark:
        if self._mark is None:
            raise RuntimeError("claim first")
        return self._mark

    def _again(self, work: Callable[[], T]) -> T:
        """Do a step that may be done twice, until ClickHouse has done it; the fence is claimed anew in between."""
        for n in range(TRIES + 1):
            try:
                return work()
            except EngineAway:
                if n == TRIES:
                    raise
                time.sleep(_RETRY_SECONDS)
                if work != self._own:
                    self._again(self._own)
        raise AssertionError

    def _wait_for_changes(self) -> None:
        """Return when no change of the calls is under way: what was asked for by whomever is done, or is none."""
        while True:
            rows = self._engine.rows(
                "SELECT mutation_id, latest_fail_reason, parts_to_do FROM system.mutations "
                f"WHERE database = '{DATABASE}' AND table = 'attempts' AND NOT is_done AND NOT is_killed"
            )
            if not rows:
                return
            if self._progress is not None:
                self._report(replace(self._progress, n_parts_left=sum(int(left) for _, _, left in rows)))
            for mutation_id, reason, _ in rows:
                if reason:
                    self._engine.command(
                        f"KILL MUTATION WHERE database = '{DATABASE}' AND table = 'attempts' "
                        f"AND mutation_id = {literal(mutation_id)}"
                    )
                    raise RepricingError(f"the calls cannot be changed: {reason}")
            time.sleep(_POLL_SECONDS)

    # --- days and runs ------------------------------------------------------------------------------------------------

    def _days(self) -> list[date]:
        """Return the days of the range that have calls with a vendor."""
        rows = self._engine.rows(
            f"SELECT DISTINCT toDate(at) AS day FROM {DATABASE}.attempts "
            f"WHERE {paid_calls(self._begin, self._end)} ORDER BY day"
        )
        return [date.fromisoformat(day) for (day,) in rows]

    def _within(self, day: date) -> tuple[datetime, datetime]:
        """Return the part of a day that lies in the range."""
        begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
        return max(begin, self._begin), min(begin + timedelta(days=1), self._end)

    def _unfinished(self) -> set[date]:
        """Return the days of runs that never ended and have calls: their rollups may lack what was changed."""
        rows = self._engine.rows(
            f"SELECT toUnixTimestamp(begins_at), toUnixTimestamp(ends_at) FROM {DATABASE}.repricings "
            f"WHERE run < {self._run} GROUP BY run, begins_at, ends_at HAVING max(is_done) = 0"
        )
        if not rows:
            return set()
        ranges = " OR ".join(f"toUnixTimestamp(at) BETWEEN {begin} AND {end}" for begin, end in rows)
        found = self._engine.rows(
            f"SELECT DISTINCT toDate(at) FROM {DATABASE}.attempts "
            f"WHERE vendor NOT IN ('', 'self-hosted') AND ({ranges})"
        )
        return {date.fromisoformat(day) for (day,) in found}

    def _note(self, *, is_done: bool, differences: list[Difference]) -> None:
        """Write down that this run has begun, or is done; then it finishes those that never ended."""
        books = self._charger.books()
        vendors = {d.vendor for d in differences}
        described = {vendor: text for vendor, text in books.items() if vendor in vendors}
        names, texts = (", ".join(literal(t) for t in side) for side in (described, described.values()))
        before, after = sum(d.usd_before for d in differences), sum(d.usd_after for d in differences)
        n, n_changed = sum(d.n for d in differences), sum(d.n_changed for d in differences)
        into = (
            f"INSERT INTO {DATABASE}.repricings (at, run, epoch, is_done, begins_at, ends_at, n, n_changed, "
            f"usd_before, usd_after, books) SELECT toDateTime64('{_text(self._now())}', 3, 'UTC'), "
        )
        own = (
            f"{self._run}, {self._owner().epoch}, {int(is_done)}, toDateTime64('{_text(self._begin)}', 3, 'UTC'), "
            f"toDateTime64('{_text(self._end)}', 3, 'UTC'), {n}, {n_changed}, toDecimal128('{text_of(before)}', 12), "
            f"toDecimal128('{text_of(after)}', 12), CAST(([{names}], [{texts}]), 'Map(String, String)')"
        )
        self._again(lambda: self._engine.command(into + own))
        if is_done:
            others = (
                "run, any(r.epoch), 1, any(r.begins_at), any(r.ends_at), argMax(r.n, r.at), argMax(r.n_changed, r.at), "
                "argMax(r.usd_before, r.at), argMax(r.usd_after, r.at), argMax(r.books, r.at) "
                f"FROM {DATABASE}.repricings AS r WHERE run < {self._run} GROUP BY run HAVING max(r.is_done) = 0"
            )
            self._again(lambda: self._engine.command(into + others))


def _depends_on(group: Calls) -> tuple[object, ...]:
    """Return all that a group's price depends on, but for dates and distances, whose slots the hash holds."""
    return (
        group.project, group.network, group.upstream, group.vendor, group.method, group.outcome, group.error_class,
        group.status, group.n_batch, group.is_sent, group.n_bytes,
    )  # fmt: skip


def _text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
