"""
What one attempt costs: units and USD, exact.

    usd = round_half_even(units * usd_per_million_units / 10^6, 12 places), per attempt; sums come after.

An upstream without vendor is an own node: 0 units, 0 USD. A vendor without a book, or without one valid on the day, is
unpriced: neither units nor USD. A vendor whose book has no price is unpriced too, but its units are counted.

Amounts are integers of 10^-12 (`SCALE`): what the column `Decimal(38, 12)` holds. `Charger.charge` caches by everything
that a price depends on, so that the usual attempt costs one dictionary access.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from itertools import pairwise

from gnomon.cost.book import PUSH, Book, Rule, Units
from gnomon.cost.errors import PriceBookError
from gnomon.cost.networks import names_of

SCALE = 12
_QUANTUM = Decimal(1).scaleb(-SCALE)
_EXACT = Context(prec=100, rounding=ROUND_HALF_EVEN)
MAX_AMOUNT = 10**38 - 1
"""The greatest amount that the column holds."""

OWN_VENDORS = frozenset({"", "self-hosted"})
_CACHE_SIZE = 100_000


@dataclass(frozen=True, slots=True)
class Charge:
    """What one attempt costs; None = not known, never 0 for not known."""

    units: int | None
    """Of 10^-12."""
    usd: int | None
    """Of 10^-12."""
    is_estimate: bool = False
    """
    A rule of the vendor's billing is not known, a factor could not be decided, the method is not in the list and the
    vendor publishes no default, or the price is a plan's divided by its units.
    """


FREE = Charge(0, 0)
UNPRICED = Charge(None, None)


def round_amount(amount: Decimal) -> int:
    """
    Return an exact amount as an integer of 10^-12, rounded half-even.

    >>> round_amount(Decimal("0.0000000000005")), round_amount(Decimal("0.0000000000015"))
    (0, 2)
    """
    with localcontext(_EXACT):
        return int(amount.quantize(_QUANTUM).scaleb(SCALE))


def text_of(amount: int) -> str:
    """
    Return an integer of 10^-12 as a decimal number, exact.

    >>> text_of(13_650_000), text_of(-1), text_of(0)
    ('0.000013650000', '-0.000000000001', '0.000000000000')
    """
    whole, rest = divmod(abs(amount), 10**SCALE)
    return f"{'-' if amount < 0 else ''}{whole}.{rest:0{SCALE}d}"


def amount_of(text: str) -> int:
    """
    Return a decimal number, as ClickHouse prints one, as an integer of 10^-12.

    >>> amount_of("0.00001365"), amount_of("-1"), amount_of("1.5")
    (13650000, -1000000000000, 1500000000000)
    """
    whole, _, rest = text.partition(".")
    return int(whole + rest.ljust(SCALE, "0"))


class PriceBooks:
    """The books of one installation: the shipped ones, and the user's in place of those of the same vendor."""

    def __init__(self, shipped: Mapping[str, Book], own: Iterable[Book] = ()) -> None:
        """
        Args:
            shipped: by vendor.
            own: the user's; several of one vendor have spans of validity that do not overlap.

        Raises:
            PriceBookError: two books of a vendor are valid at the same time.
        """
        mine: dict[str, list[Book]] = {}
        for book in own:
            mine.setdefault(book.vendor, []).append(book)
        self._books: dict[str, tuple[Book, ...]] = {vendor: (book,) for vendor, book in shipped.items()}
        for vendor, books in mine.items():
            books.sort(key=lambda b: b.valid_from or _BEGINNING)
            _refuse_overlap(books)
            self._books[vendor] = tuple(books)

    def find(self, vendor: str, at: datetime) -> Book | None:
        """Return the vendor's book that is valid at an instant; None where there is none."""
        for book in self._books.get(vendor, ()):
            if (book.valid_from is None or book.valid_from <= at) and (book.valid_to is None or at < book.valid_to):
                return book
        return None

    def is_dated(self, vendor: str) -> bool:
        """Return whether the instant matters at all for a vendor."""
        return any(b.valid_from or b.valid_to for b in self._books.get(vendor, ()))

    def dates(self) -> list[int]:
        """Return the instants at which a book begins or ends to be valid, in UTC seconds, rounded up."""
        bounds = (bound for books in self._books.values() for b in books for bound in (b.valid_from, b.valid_to))
        return sorted({math.ceil(bound.timestamp()) for bound in bounds if bound is not None})

    def needs_bytes(self, vendor: str, method: str) -> bool:
        """Return whether the size of what came can matter to the price."""
        return method == PUSH and any(b.has_pushes_by_byte for b in self._books.get(vendor, ()))

    def far_vendors(self) -> list[str]:
        """Return the vendors at which how far a block lies behind the head can matter."""
        return sorted(
            vendor
            for vendor, books in self._books.items()
            if any(b.archive_after_blocks is not None and b.archive_multiplier != 1 for b in books)
        )

    def sized_vendors(self) -> list[str]:
        """Return the vendors at which the size of a push can matter."""
        return sorted(vendor for vendor in self._books if self.needs_bytes(vendor, PUSH))

    def described(self) -> dict[str, str]:
        """Return which books price each vendor's calls, in a line."""
        return {vendor: "; ".join(book.title for book in books) for vendor, books in sorted(self._books.items())}

    def distances(self) -> list[int]:
        """Return the distances from the head at which a price may change, in blocks."""
        return sorted(
            {
                b.archive_after_blocks
                for books in self._books.values()
                for b in books
                if b.archive_after_blocks is not None
            }
        )

    def needs_distance(self, vendor: str, method: str) -> bool:
        """Return whether how far the block lies behind the head can matter to the price."""
        return any(
            b.archive_after_blocks is not None
            and b.archive_multiplier != 1
            and (b.archive_methods is None or method in b.archive_methods)
            for b in self._books.get(vendor, ())
        )


_BEGINNING = datetime.min.replace(tzinfo=UTC)


def _refuse_overlap(books: Sequence[Book]) -> None:
    for earlier, later in pairwise(books):
        if earlier.valid_to is None or later.valid_from is None or later.valid_from < earlier.valid_to:
            message = f"valid at the same time as {earlier.source} of the same vendor ({later.vendor})"
            raise PriceBookError(later.source, [f"{message}: set valid_from and valid_to"])


class Charger:
    """Charges attempts by the books, with a memory."""

    def __init__(
        self,
        books: PriceBooks,
        own_units: Mapping[tuple[str, str], Mapping[str, Decimal]] | None = None,
        archives: Mapping[tuple[str, str], bool] | None = None,
    ) -> None:
        """
        Args:
            books: by vendor.
            own_units: (project, upstream) → method or `*` → units, as configured; they win over the books.
            archives: (project, upstream) → whether it has archive data, where the configuration says so.
        """
        self._books = books
        self._own_units = own_units or {}
        self._archives = archives or {}
        self._cache: dict[tuple[object, ...], Charge] = {}
        self._needs_distance: dict[tuple[str, str], bool] = {}
        self._is_dated: dict[str, bool] = {}

    def dates(self) -> list[int]:
        """Return the instants at which any price may change, in UTC seconds."""
        return self._books.dates()

    def distances(self) -> list[int]:
        """Return the distances from the head at which any price may change, in blocks."""
        return self._books.distances()

    def far_vendors(self) -> list[str]:
        """Return the vendors at which how far a block lies behind the head can matter."""
        return self._books.far_vendors()

    def sized_vendors(self) -> list[str]:
        """Return the vendors at which the size of a push can matter."""
        return self._books.sized_vendors()

    def books(self) -> dict[str, str]:
        """Return which books price each vendor's calls, in a line."""
        return self._books.described()

    def needs_bytes(self, vendor: str, method: str) -> bool:
        """Return whether `n_bytes` can matter to a call."""
        return method == PUSH and self._books.needs_bytes(vendor, method)

    def needs_distance(self, vendor: str, method: str) -> bool:
        """Return whether `blocks_behind` can matter to a call; else callers need not find it out."""
        key = (vendor, method)
        known = self._needs_distance.get(key)
        if known is None:
            if len(self._needs_distance) > _CACHE_SIZE:
                self._needs_distance.clear()
            known = self._needs_distance[key] = self._books.needs_distance(vendor, method)
        return known

    def own_units(self, project: str, upstream: str, method: str) -> Decimal | None:
        """Return the units that the configuration gives a method at an upstream; None where it says nothing."""
        if not self._own_units:
            return None
        units = self._own_units.get((project, upstream))
        if units is None:
            return None
        found = units.get(method)
        return units.get("*") if found is None else found

    def has_archive(self, project: str, upstream: str) -> bool | None:
        """Return whether an upstream has archive data (`evm.nodeType`); None where the configuration says nothing."""
        return self._archives.get((project, upstream)) if self._archives else None

    def charge(
        self,
        vendor: str,
        network: str,
        method: str,
        outcome: str,
        error_class: str,
        status: int,
        n_batch: int,
        at_seconds: int,
        blocks_behind: int | None = None,
        own_units: Decimal | None = None,
        n_bytes: int = 0,
        has_archive: bool | None = None,
    ) -> Charge:
        """
        Return what one attempt costs.

        Args:
            vendor: '' for an own node.
            outcome, error_class, status: as in the attempt.
            n_batch: elements of the upstream batch it travelled in.
            at_seconds: UTC, when it ended.
            blocks_behind: how far the block asked for lies behind the head; None = not known. Matters only where
                `needs_distance` says so.
            own_units: what the configuration says a call of this method costs at this upstream (`creditUnits`).
            n_bytes: size of a pushed message. Matters only where `needs_bytes` says so; else leave it 0.
            has_archive: whether the upstream has archive data; None = not known.
        """
        if vendor in OWN_VENDORS:
            return FREE
        dated = self._is_dated.get(vendor)
        if dated is None:
            dated = self._is_dated[vendor] = self._books.is_dated(vendor)
        key = (
            vendor,
            network,
            method,
            outcome,
            error_class,
            status,
            n_batch,
            at_seconds if dated else 0,
            blocks_behind,
            own_units,
            n_bytes,
            has_archive,
        )
        charge = self._cache.get(key)
        if charge is None:
            if len(self._cache) > _CACHE_SIZE:
                self._cache.clear()
            book = self._books.find(vendor, datetime.fromtimestamp(at_seconds, UTC))
            if book is not None:
                charge = price(
                    book, network, method, outcome, error_class, status, n_batch, blocks_behind, own_units, n_bytes,
                    has_archive,
                )  # fmt: skip
            else:
                charge = UNPRICED if own_units is None else Charge(round_amount(own_units), None)
            self._cache[key] = charge
        return charge


def price(
    book: Book,
    network: str,
    method: str,
    outcome: str,
    error_class: str,
    status: int,
    n_batch: int,
    blocks_behind: int | None,
    own_units: Decimal | None = None,
    n_bytes: int = 0,
    has_archive: bool | None = None,
) -> Charge:
    """Return what one attempt costs by one book; see `Charger.charge`."""
    rule, is_estimate = billing_rule(book, outcome, error_class, status)
    is_estimate = is_estimate or (n_batch > 1 and book.billing.batch == "unknown")
    if isinstance(rule, Decimal):
        units: Decimal | None = rule
    elif own_units is not None:
        units = own_units
        is_estimate = is_estimate or rule == "unknown"
    else:
        if rule == "default":
            found = None if book.default_units is None else Units(book.default_units, book.is_default_assumed)
        else:
            found = book.push_units(n_bytes) if method == PUSH else book.method_units(method)
        units = None if found is None else found.amount
        is_estimate = is_estimate or rule == "unknown"
        if found is not None and units is not None:
            is_estimate = is_estimate or found.is_estimate
            factor, sure = network_factor(book, network)
            archive, archive_sure = archive_factor(book, network, method, blocks_behind, has_archive)
            with localcontext(_EXACT):
                units = units * factor * archive
            is_estimate = is_estimate or not sure or not archive_sure
    if units is None:
        return Charge(None, None, is_estimate)
    with localcontext(_EXACT):
        if book.billing.batch == "per_batch" and n_batch > 1:
            units = units / n_batch
        usd = None if book.usd_per_million_units is None else units * book.usd_per_million_units / 1_000_000
    is_estimate = is_estimate or (book.is_price_derived and bool(usd))
    return Charge(round_amount(units), None if usd is None else round_amount(usd), is_estimate)


def billing_rule(book: Book, outcome: str, error_class: str, status: int) -> tuple[Rule, bool]:
    """Return the billing rule for an outcome, and whether it had to be guessed."""
    billing = book.billing
    if outcome == "result":
        return "method", False
    if outcome == "empty":
        return billing.null_result, billing.null_result == "unknown"
    if outcome == "verdict":
        # A halt (out of gas) ran as a revert did; other verdicts are answers like any other.
        rule = billing.execution_revert if error_class in ("revert", "halt") else "method"
        return rule, rule == "unknown"
    if outcome == "cancelled":
        return billing.cancelled, billing.cancelled == "unknown"
    if outcome in ("timeout", "transport"):
        # The call may have reached the vendor: the safe reading counts it.
        return billing.timeout, billing.timeout == "unknown"
    for name in _error_names(error_class, status):
        found = billing.error_units.get(name)
        if found is not None:
            return found, found == "unknown"
    return "unknown", True


def _error_names(error_class: str, status: int) -> Sequence[str]:
    """Return the members of `error_units` that may speak of a failure, the most telling first."""
    names = []
    if error_class == "method_not_found":
        names.append("method_not_found")
    if error_class == "rate_limited" or status == 429:
        names.append("http_429")
    if error_class == "quota" and status in (0, 200):
        names += ["http_402", "http_429"]
    if error_class == "unauthorized" and status in (0, 200, 400):
        names.append("unauthorized")
    if 400 <= status < 600:
        names += [f"http_{status}", "other_http_4xx" if status < 500 else "http_5xx"]
    names.append("any_failed")
    return names


def network_factor(book: Book, network: str) -> tuple[Decimal, bool]:
    """Return the factor of a network, and whether the price list names it (a list without factors names all)."""
    if not book.network_multipliers:
        return Decimal(1), True
    names = names_of(network)
    for name in names:
        if name in book.network_multipliers:
            return book.network_multipliers[name], True
    return Decimal(1), any(name in book.base_networks for name in names)


def archive_factor(
    book: Book, network: str, method: str, blocks_behind: int | None, has_archive: bool | None = None
) -> tuple[Decimal, bool]:
    """Return the factor of an old block, or of an endpoint with archive, and whether that could be decided."""
    if book.archive_multiplier == 1:
        return Decimal(1), True
    if book.archive_methods is not None and method not in book.archive_methods:
        return Decimal(1), True
    if any(name in book.archive_exempt_networks for name in names_of(network)):
        return Decimal(1), True
    after = book.archive_after_blocks
    if after is None:
        return (book.archive_multiplier if has_archive else Decimal(1)), has_archive is not None
    if blocks_behind is None:
        return Decimal(1), False
    return (book.archive_multiplier if blocks_behind >= after else Decimal(1)), True
