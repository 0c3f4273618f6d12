"""
Stored calls in groups of equal price, and what they would cost by the price books of now.

A price depends on few things. Where the distance of the block from the head matters only the side of each threshold
does, where the date of a book matters only the side of each date; so many million calls are some thousand groups.
`Keys` writes that down in SQL, the same way for reading groups and for changing calls.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime

from gnomon.cost.book import PUSH
from gnomon.cost.charge import FREE, Charge, Charger, amount_of
from gnomon.cost.waste import is_paid
from ingest.attempts import MAY_NOT_HAVE_LEFT
from ingest.engine import literal
from ingest.tables import DATABASE

NOT_NEEDED = 255
"""The slot of calls whose price does not depend on their block."""
MAX_DISTANCES = 200


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of equal price, charged equally until now."""

    hash: int
    """Of all that the price depends on."""
    project: str
    network: str
    upstream: str
    vendor: str
    account: str
    method: str
    outcome: str
    error_class: str
    status: int
    n_batch: int
    is_sent: bool
    is_useless: bool
    at_seconds: int
    """Of one of them; all lie on the same side of each date of a book."""
    behind: int | None
    """Blocks behind the head of one of them; all lie on the same side of each distance of a book."""
    n_bytes: int
    """Size of a pushed message, where that matters; else 0."""
    n: int
    charged: Charge
    """As each of them is charged now."""
    is_wasted: bool

    def price(self, charger: Charger) -> tuple[Charge, bool]:
        """Return what each costs by the charger's books, and whether that is wasted."""
        charge = self._charge(charger)
        return charge, self.is_useless and is_paid(self.vendor, charge)

    def _charge(self, charger: Charger) -> Charge:
        if not self.is_sent and self.outcome in MAY_NOT_HAVE_LEFT:
            return FREE
        return charger.charge(
            self.vendor, self.network, self.method, self.outcome, self.error_class, self.status, self.n_batch,
            self.at_seconds, self.behind if charger.needs_distance(self.vendor, self.method) else None,
            charger.own_units(self.project, self.upstream, self.method),
            self.n_bytes if charger.needs_bytes(self.vendor, self.method) else 0,
            charger.has_archive(self.project, self.upstream),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """One upstream and method: charged, and what it is by the books of now."""

    network: str
    upstream: str
    vendor: str
    account: str
    method: str
    n: int = 0
    n_changed: int = 0
    n_unpriced_before: int = 0
    n_unpriced_after: int = 0
    units_before: int = 0
    """Of 10^-12, and so are the others; what is not known adds nothing."""
    units_after: int = 0
    usd_before: int = 0
    usd_after: int = 0

    @property
    def usd_change(self) -> int:
        return self.usd_after - self.usd_before

    @property
    def is_one(self) -> bool:
        """Whether anything differs."""
        return self.n_changed > 0


class Differences:
    """Adds groups up; amounts are sums of calls that were rounded one by one, as at first."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str, str, str], Difference] = {}

    def add(self, calls: Calls, charge: Charge, is_wasted: bool) -> bool:
        """Add a group and what each of its calls costs now; return whether that is another charge than before."""
        key = (calls.network, calls.upstream, calls.vendor, calls.account, calls.method)
        it = self._sums.get(key) or Difference(*key)
        before, n = calls.charged, calls.n
        is_changed = (before, calls.is_wasted) != (charge, is_wasted)
        self._sums[key] = replace(
            it,
            n=it.n + n,
            n_changed=it.n_changed + (n if is_changed else 0),
            n_unpriced_before=it.n_unpriced_before + (n if before.usd is None else 0),
            n_unpriced_after=it.n_unpriced_after + (n if charge.usd is None else 0),
            units_before=it.units_before + (before.units or 0) * n,
            units_after=it.units_after + (charge.units or 0) * n,
            usd_before=it.usd_before + (before.usd or 0) * n,
            usd_after=it.usd_after + (charge.usd or 0) * n,
        )
        return is_changed

    def update(self, other: "Differences") -> None:
        """Add all of another one."""
        for key, more in other._sums.items():
            it = self._sums.get(key)
            if it is None:
                self._sums[key] = more
                continue
            names = [f.name for f in fields(Difference)[len(key) :]]
            self._sums[key] = replace(it, **{name: getattr(it, name) + getattr(more, name) for name in names})

    @property
    def counts(self) -> tuple[int, int]:
        """Calls, and those that are charged otherwise now."""
        return sum(d.n for d in self._sums.values()), sum(d.n_changed for d in self._sums.values())

    def rows(self) -> list[Difference]:
        """Return them, dearest change first."""
        return sorted(self._sums.values(), key=lambda d: (-abs(d.usd_change), d.network, d.upstream, d.method))


def reprice(calls: Iterable[Calls], charger: Charger) -> list[Difference]:
    """Return what the calls cost by the charger's books beside what they were charged, dearest change first."""
    found = Differences()
    for group in calls:
        found.add(group, *group.price(charger))
    return found.rows()


@dataclass(frozen=True, slots=True)
class Keys:
    """What a price depends on, as SQL over a row of `attempts`. Times and names stand in it as literals."""

    hash: str
    n_bytes: str
    behind_slot: str
    date_slot: str

    @classmethod
    def of(cls, charger: Charger, salt: int = 0) -> "Keys":
        """
        Return the expressions for the books of a charger.

        Args:
            salt: another one gives other hashes.
        """
        far, sized, dates = charger.far_vendors(), charger.sized_vendors(), charger.dates()
        distances = charger.distances()
        if len(distances) > MAX_DISTANCES:
            raise ValueError(f"more than {MAX_DISTANCES} distances in the price books")
        behind_slot = f"toUInt8({NOT_NEEDED})"
        if far:
            side = f"arrayCount(d -> assumeNotNull(blocks_behind) >= d, {_numbers(distances)})"
            slot = f"if(isNull(blocks_behind), 0, 1 + {side})"
            behind_slot = f"toUInt8(if(vendor IN ({_texts(far)}), {slot}, {NOT_NEEDED}))"
        n_bytes = "toUInt32(0)"
        if sized:
            n_bytes = f"toUInt32(if(vendor IN ({_texts(sized)}) AND method = {literal(PUSH)}, response_bytes, 0))"
        date_slot = (
            f"toUInt32(arrayCount(d -> toUnixTimestamp(at) >= d, {_numbers(dates)}))" if dates else "toUInt32(0)"
        )
        of_row = "project, network, upstream, vendor, method, outcome, error_class, status, n_batch, request_bytes > 0"
        return cls(
            f"cityHash64({salt}, {of_row}, {n_bytes}, {behind_slot}, {date_slot})", n_bytes, behind_slot, date_slot
        )

    def groups(self, where: str) -> str:
        """Return the SELECT of the groups of some calls; `calls` reads its rows."""
        return f"""
SELECT
    {self.hash} AS hash, project, network, upstream, vendor, account, method, outcome, error_class, status, n_batch,
    request_bytes > 0 AS is_sent, toUInt8(is_useless) AS useless, toUnixTimestamp(min(at)), min(blocks_behind),
    {self.n_bytes} AS size, count(), units, usd, toUInt8(is_estimate) AS estimate, toUInt8(is_wasted) AS wasted,
    {self.behind_slot} AS behind_slot, {self.date_slot} AS date_slot
FROM {DATABASE}.attempts
WHERE {where}
GROUP BY hash, project, network, upstream, vendor, account, method, outcome, error_class, status, n_batch, is_sent,
    useless, size, units, usd, estimate, wasted, behind_slot, date_slot
"""


def paid_calls(begin: datetime, end: datetime) -> str:
    """Return the condition for the calls of a range that a price book speaks of; own nodes have none."""
    return (
        f"vendor NOT IN ('', 'self-hosted') AND at >= toDateTime64('{_time(begin)}', 3, 'UTC') "
        f"AND at < toDateTime64('{_time(end)}', 3, 'UTC')"
    )


def calls(row: Sequence[str]) -> Calls:
    """Return the group that a row of `Keys.groups` is."""
    (hash_, project, network, upstream, vendor, account, method, outcome, error_class, status, n_batch, is_sent,
     is_useless, at_seconds, behind, n_bytes, n, units, usd, is_estimate, is_wasted, behind_slot, _) = row  # fmt: skip
    return Calls(
        int(hash_), project, network, upstream, vendor, account, method, outcome, error_class, int(status),
        int(n_batch), is_sent == "1", is_useless == "1", int(at_seconds),
        None if behind == "\\N" or int(behind_slot) == NOT_NEEDED else int(behind), int(n_bytes), int(n),
        Charge(scaled(units), scaled(usd), is_estimate == "1"), is_wasted == "1",
    )  # fmt: skip


def scaled(text: str) -> int | None:
    """Return an amount that ClickHouse has printed as an integer of 10^-12; None for NULL."""
    return None if text == "\\N" else amount_of(text)


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _texts(items: Iterable[str]) -> str:
    return ", ".join(literal(item) for item in items)


def _numbers(items: Iterable[int]) -> str:
    return f"CAST([{', '.join(str(item) for item in items)}], 'Array(UInt64)')"
