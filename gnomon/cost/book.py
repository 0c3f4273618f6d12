"""
A price book: what one vendor charges, as its price list says.

The form is that of the shipped books (`books/*.yaml`); members that this module does not read (sources, notes, plans)
are for people and are let through. What is read is checked, all faults at once. Numbers are read as decimals from
their text, so that 0.525 is 0.525.

A name of `methods` that ends in `*` is a prefix. An exact name wins, then the longest prefix, then `default_units`.

What a node pushes to a subscription (`PUSH`) is charged by the message or by the byte, as the `ws_notification_units…`
members of `billing` say. We subscribe to `newHeads` only, so of prices by event that one counts.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

import yaml

from gnomon.cost.errors import PriceBookError
from gnomon.cost.networks import fold

Rule = Decimal | Literal["method", "default", "unknown"]
"""What an outcome costs: a number of units, the method's, the default, or unknown (the method's, as an estimate)."""

PUSH = "eth_subscription"
"""The method of a pushed message."""

_WORDS = ("method", "default", "unknown")
_PER_EVENT = "billing.ws_notification_units_per_event"
_OUTCOMES = ("null_result", "execution_revert", "timeout", "cancelled")


@dataclass(frozen=True, slots=True)
class Billing:
    """Which outcomes are charged."""

    batch: Literal["per_call", "per_batch", "unknown"] = "unknown"
    error_units: Mapping[str, Rule] = field(default_factory=dict)
    null_result: Rule = "unknown"
    execution_revert: Rule = "unknown"
    timeout: Rule = "unknown"
    cancelled: Rule = "unknown"
    push_units: Decimal | None = None
    """Of a pushed message; None: by the byte, or not told."""
    push_units_per_byte: Decimal | None = None
    is_push_as_default: bool = False
    """A pushed message costs `default_units` (the price list: the network's base)."""


@dataclass(frozen=True, slots=True)
class Units:
    """Units of a call before the factors of network and age, and whether the price list gives them."""

    amount: Decimal
    is_estimate: bool = False


@dataclass(frozen=True, slots=True)
class Book:
    """One vendor's prices, for a span of time."""

    vendor: str
    source: str
    usd_per_million_units: Decimal | None
    """None: unpriced. Units are counted, the money is left out."""
    default_units: Decimal | None
    methods: Mapping[str, Decimal]
    prefixes: tuple[tuple[str, Decimal], ...]
    """Longest first."""
    archive_multiplier: Decimal
    archive_after_blocks: int | None
    """
    A block this many or more behind the head costs `archive_multiplier` times. None: distance does not matter, the
    factor is that of every call to an endpoint with archive.
    """
    archive_methods: frozenset[str] | None
    """None: every method."""
    archive_exempt_networks: frozenset[str]
    network_multipliers: Mapping[str, Decimal]
    """By folded name (gnomon.cost.networks)."""
    base_networks: frozenset[str]
    """Networks that the price list names without a factor, folded."""
    valid_from: datetime | None
    valid_to: datetime | None
    """Exclusive."""
    billing: Billing
    as_of: str = ""
    digest: str = ""
    """Of its text: another text is another book."""
    is_price_derived: bool = False
    """The price is a plan's, divided by the units in it: right when the plan is used up, an estimate else."""
    is_default_assumed: bool = False
    """The vendor does not publish what a method costs that its list does not name."""

    @property
    def title(self) -> str:
        """The book in a few words, as it is kept beside what it priced."""
        price = (
            "no price" if self.usd_per_million_units is None else f"{self.usd_per_million_units} USD a million units"
        )
        bounds = (("from", self.valid_from), ("to", self.valid_to))
        valid = "".join(f", {word} {bound:%Y-%m-%dT%H:%M:%SZ}" for word, bound in bounds if bound is not None)
        return f"{Path(self.source).name} {self.digest[:12]}: {price}{valid}"

    def method_units(self, method: str) -> Units | None:
        """Return the units of a method; None where the book does not say."""
        exact = self.methods.get(method)
        if exact is not None:
            return Units(exact)
        for prefix, units in self.prefixes:
            if method.startswith(prefix):
                return Units(units)
        return None if self.default_units is None else Units(self.default_units, self.is_default_assumed)

    def push_units(self, n_bytes: int) -> Units | None:
        """
        Return the units of a pushed message; None where the book does not say.

        Args:
            n_bytes: its size, as it was delivered.
        """
        billing = self.billing
        if PUSH in self.methods:
            return Units(self.methods[PUSH])
        if billing.push_units is not None:
            return Units(billing.push_units)
        if billing.push_units_per_byte is not None:
            return Units(billing.push_units_per_byte * n_bytes)
        as_default = self.method_units(PUSH)
        if as_default is None or billing.is_push_as_default:
            return as_default
        return Units(as_default.amount, True)

    @property
    def has_pushes_by_byte(self) -> bool:
        """Whether the size of a pushed message matters to its price."""
        return (
            PUSH not in self.methods
            and self.billing.push_units is None
            and self.billing.push_units_per_byte is not None
        )


class _DecimalLoader(yaml.SafeLoader):
    """Reads numbers with a fraction as decimals, from their own text."""


def _decimal(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Decimal:
    text = str(loader.construct_scalar(node)).replace("_", "").lower()
    return Decimal(text.replace(".", "") if text.endswith((".inf", ".nan")) else text)


_DecimalLoader.add_constructor("tag:yaml.org,2002:float", _decimal)


def parse(text: str, source: str) -> Book:
    """
    Return the book that a YAML text describes.

    Args:
        text: the file's content.
        source: its name, for messages.

    Raises:
        PriceBookError: with every fault and its place.
    """
    try:
        document = yaml.load(text, _DecimalLoader)
    except (yaml.YAMLError, InvalidOperation) as error:
        raise PriceBookError(source, [f"no YAML: {error}"]) from error
    if not isinstance(document, dict):
        raise PriceBookError(source, ["a book is a mapping with the member `vendor`"])
    reader = _Reader()
    book = reader.book(document, source)
    if reader.problems:
        raise PriceBookError(source, reader.problems)
    return replace(book, digest=hashlib.blake2b(text.encode(), digest_size=16).hexdigest())


@cache
def shipped() -> Mapping[str, Book]:
    """Return the shipped books by vendor."""
    books = {}
    for entry in (resources.files("gnomon.cost") / "books").iterdir():
        if entry.name.endswith(".yaml"):
            book = parse(entry.read_text(encoding="utf-8"), entry.name)
            books[book.vendor] = book
    return books


def configured(files: Iterable[str]) -> list[Book]:
    """
    Return a user's own books.

    Raises:
        PriceBookError: one cannot be read or used.
    """
    books = []
    for file in files:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PriceBookError(file, [f"cannot be read: {error}"]) from error
        books.append(parse(text, file))
    return books


class _Reader:
    """Takes a document apart and collects what is wrong with it."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def book(self, document: Mapping[object, object], source: str) -> Book:
        vendor = document.get("vendor")
        if not isinstance(vendor, str) or not vendor:
            self.problems.append("vendor: want the vendor's name")
            vendor = ""
        for required in ("usd_per_million_units", "default_units"):
            if required not in document:
                self.problems.append(f"{required}: missing (null = not known)")
        exact, prefixes = self._methods(document.get("methods"))
        self._subscribing(exact, self._mapping(document.get("billing"), "billing"))
        after = document.get("archive_after_blocks")
        if after is not None and (not isinstance(after, int) or isinstance(after, bool) or after < 0):
            self.problems.append(f"archive_after_blocks: want a number of blocks, not {after!r}")
            after = None
        archive = document.get("archive_methods")
        return Book(
            vendor=vendor,
            source=source,
            usd_per_million_units=self._price(document.get("usd_per_million_units"), "usd_per_million_units"),
            default_units=self._price(document.get("default_units"), "default_units"),
            methods=exact,
            prefixes=prefixes,
            archive_multiplier=self._price(document.get("archive_multiplier", 1), "archive_multiplier") or Decimal(1),
            archive_after_blocks=after,
            archive_methods=None if archive is None else frozenset(self._words(archive, "archive_methods")),
            archive_exempt_networks=frozenset(
                fold(n) for n in self._words(document.get("archive_exempt_networks"), "archive_exempt_networks")
            ),
            network_multipliers=self._numbers(document.get("network_multipliers"), "network_multipliers"),
            base_networks=frozenset(self._numbers(document.get("network_base_units"), "network_base_units")),
            valid_from=self._date(document.get("valid_from"), "valid_from"),
            valid_to=self._date(document.get("valid_to"), "valid_to"),
            billing=self._billing(document.get("billing")),
            as_of=str(document.get("as_of") or ""),
            is_price_derived=str(document.get("price_basis") or "").startswith("derived"),
            is_default_assumed=self._flag(document.get("default_units_assumed"), "default_units_assumed"),
        )

    def _methods(self, value: object) -> tuple[dict[str, Decimal], tuple[tuple[str, Decimal], ...]]:
        exact: dict[str, Decimal] = {}
        prefixes: list[tuple[str, Decimal]] = []
        for name, units in self._mapping(value, "methods").items():
            price = self._price(units, f"methods.{name}")
            if price is None:
                if units is None:
                    self.problems.append(f"methods.{name}: want units; leave the method out where they are not known")
            elif str(name).endswith("*"):
                prefixes.append((str(name)[:-1], price))
            else:
                exact[str(name)] = price
        return exact, tuple(sorted(prefixes, key=lambda p: -len(p[0])))

    def _subscribing(self, exact: dict[str, Decimal], billing: Mapping[object, object]) -> None:
        """Add what subscribing costs, and the connection that each of our subscriptions opens for itself."""
        for method, member in (("eth_subscribe", "ws_subscribe_units"), ("eth_unsubscribe", "ws_unsubscribe_units")):
            units = self._price(billing.get(member), f"billing.{member}")
            if units is not None:
                exact.setdefault(method, units)
        opening = self._price(billing.get("ws_connection_open_units"), "billing.ws_connection_open_units")
        if opening is not None:
            exact["eth_subscribe"] = exact.get("eth_subscribe", Decimal(0)) + opening

    def _billing(self, value: object) -> Billing:
        members = self._mapping(value, "billing")
        batch = members.get("batch", "unknown")
        if batch not in ("per_call", "per_batch", "unknown", "custom"):
            self.problems.append(f"billing.batch: want per_call, per_batch or unknown, not {batch!r}")
        errors = {
            str(name): self._rule(rule, f"billing.error_units.{name}")
            for name, rule in self._mapping(members.get("error_units"), "billing.error_units").items()
        }
        outcomes = {name: self._rule(members.get(name, "unknown"), f"billing.{name}") for name in _OUTCOMES}
        by_event = self._mapping(members.get("ws_notification_units_per_event"), _PER_EVENT)
        each = members.get("ws_notification_units")
        push = self._price(by_event.get("newHeads"), f"{_PER_EVENT}.newHeads")
        if push is None and each != "network_base":
            push = self._price(each, "billing.ws_notification_units")
        return Billing(
            batch="per_batch" if batch == "per_batch" else "per_call" if batch == "per_call" else "unknown",
            error_units=errors,
            null_result=outcomes["null_result"],
            execution_revert=outcomes["execution_revert"],
            timeout=outcomes["timeout"],
            cancelled=outcomes["cancelled"],
            push_units=push,
            push_units_per_byte=self._price(
                members.get("ws_notification_units_per_byte"), "billing.ws_notification_units_per_byte"
            ),
            is_push_as_default=each == "network_base",
        )

    def _rule(self, value: object, place: str) -> Rule:
        if value == "method":
            return "method"
        if value == "default":
            return "default"
        if value == "unknown":
            return "unknown"
        if isinstance(value, str) and not value[:1].isdigit():
            self.problems.append(f"{place}: want a number of units or one of {', '.join(_WORDS)}, not {value!r}")
            return "unknown"
        price = self._price(value, place)
        if price is None:
            if value is None:
                self.problems.append(f"{place}: want a number of units or one of {', '.join(_WORDS)}, not null")
            return "unknown"
        return price

    def _price(self, value: object, place: str) -> Decimal | None:
        """Return a finite decimal not below 0; None for null. Text and numbers are read alike."""
        if value is None:
            return None
        if isinstance(value, (str, int, Decimal)) and not isinstance(value, bool):
            try:
                number = Decimal(value)
            except InvalidOperation:
                number = Decimal("NaN")
            if number.is_finite() and number >= 0:
                return number
        self.problems.append(f"{place}: want a number not below 0, not {value!r}")
        return None

    def _numbers(self, value: object, place: str) -> dict[str, Decimal]:
        numbers = {}
        for name, number in self._mapping(value, place).items():
            price = self._price(number, f"{place}.{name}")
            if price is not None:
                numbers[fold(str(name))] = price
        return numbers

    def _mapping(self, value: object, place: str) -> Mapping[object, object]:
        if value is None:
            return {}
        if isinstance(value, dict):
            return value
        self.problems.append(f"{place}: want a mapping, not {value!r}")
        return {}

    def _words(self, value: object, place: str) -> list[str]:
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
        self.problems.append(f"{place}: want a list of names, not {value!r}")
        return []

    def _flag(self, value: object, place: str) -> bool:
        if value is None or isinstance(value, bool):
            return bool(value)
        self.problems.append(f"{place}: want true or false, not {value!r}")
        return False

    def _date(self, value: object, place: str) -> datetime | None:
        """Return the start of a day, or an instant, in UTC."""
        if value is None:
            return None
        moment: datetime | None = None
        if isinstance(value, datetime):
            moment = value
        elif isinstance(value, date):
            moment = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - made aware below
        elif isinstance(value, str):
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                moment = None
        if moment is None:
            self.problems.append(f"{place}: want a date (2026-11-30) or an instant, not {value!r}")
            return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
