"""
What shadows may use: the rates and budgets of the configuration, and the file by which budgets outlive the process.

`shadow-spend.json` lies in the worker's folder of the event log: the month, and what each shadow's mirrored calls have
cost in it, in USD as decimal texts. Writing it is ahead of spending (see `proxy.core.allowance`); while it cannot be
read or written, shadows with a budget get no copies, for nobody could say what they have cost.

A call costs what the price books say of it, as in the tables. A shadow with a budget whose vendor has no price gets no
copies either.
"""

from __future__ import annotations

import logging
import os
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from gnomon.cost.book import configured, shipped
from gnomon.cost.charge import Charger, PriceBooks, round_amount
from gnomon.cost.distance import blocks_behind
from gnomon.rpc.blocks import NO_BLOCK, request_block
from proxy.core.allowance import MonthlyBudget, Rate

if TYPE_CHECKING:
    from gnomon.config.model import Settings, ShadowPolicy, Upstream
    from gnomon.rpc.methods import Method

log = logging.getLogger("gnomon.proxy")

FILE_NAME: Final = "shadow-spend.json"
_UNIT: Final = 10**12
"""Amounts are picodollars, as charges are."""


class _Spend(Struct):
    month: str = ""
    usd: dict[str, str] = {}


_decode = msgspec.json.Decoder(_Spend).decode


class Allowance:
    """What one shadow may use; shared by all its legs, kept over a reload."""

    __slots__ = ("_owner", "_said", "budget", "key", "rate")

    def __init__(self, owner: Allowances, key: str, rate: Rate | None, budget: MonthlyBudget | None) -> None:
        self._owner = owner
        self.key = key
        self.rate = rate
        self.budget = budget
        self._said = ""

    def has_room(self, cost: int | None) -> bool:
        """Say whether a call may go out that is expected to cost so many picodollars; None: nobody knows."""
        if self.rate is not None and not self.rate.has_room(time.monotonic()):
            return False
        budget = self.budget
        if budget is None:
            return True
        if cost is None:
            self._say("unpriced", "no price is known for calls to shadow %s, which has a budget: they are not made")
            return False
        month = this_month()
        if not budget.has_room(cost, month):
            self._say(month, "the month's budget of shadow %s is used up")
            return False
        grant = budget.wanted_grant(cost)
        return grant is None or self._owner.grant(self, grant)

    def take(self, cost: int) -> None:
        """Count a call that goes out, at what it is expected to cost."""
        if self.rate is not None:
            self.rate.take(time.monotonic())
        if self.budget is not None:
            self.budget.reserve(cost)

    def settle(self, expected: int, actual: int) -> None:
        """Count a call that has ended."""
        if self.budget is not None:
            self.budget.settle(expected, actual, this_month())

    def _say(self, what: str, message: str) -> None:
        if self._said != what:
            self._said = what
            log.warning(message, self.key)


class Allowances:
    """The allowances of one worker's shadows."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        """
        Args:
            folder: where the file of the budgets is.

        Raises:
            PriceBookError: a budget needs the configured price books, and one cannot be used.
        """
        self._path = folder / FILE_NAME
        self._by_key: dict[str, Allowance] = {}
        self._month = ""
        self._others: dict[str, int] = {}
        """This month's spending of shadows that are not configured now."""
        self._is_usable = False
        self._charger = Charger(PriceBooks({}))
        self.apply(settings, charger_for(settings))

    def apply(self, settings: Settings, charger: Charger | None) -> None:
        """Take new limits; what was used stays used. `charger` is `charger_for` the settings."""
        wanted = {
            f"{project.id}/{upstream.id}": upstream.shadow
            for project in settings.projects
            for upstream in project.upstreams
            if upstream.shadow is not None and is_limited(upstream.shadow)
        }
        if charger is not None:
            self._charger = charger
            if not self._is_usable:
                self._read()
        for key in set(self._by_key) - set(wanted):
            self._put_aside(key, self._by_key.pop(key).budget)
        for key, policy in wanted.items():
            self._apply(key, policy)

    def _apply(self, key: str, policy: ShadowPolicy) -> None:
        found = self._by_key.setdefault(key, Allowance(self, key, None, None))
        if policy.max_per_second is None:
            found.rate = None
        elif found.rate is None or found.rate.per_second != policy.max_per_second:
            found.rate = Rate(policy.max_per_second)
        if policy.monthly_budget_usd is None:
            self._put_aside(key, found.budget)
            found.budget = None
            return
        limit = round_amount(Decimal(policy.monthly_budget_usd))
        spent = self._others.pop(key, None)
        if found.budget is None or spent is not None:
            found.budget = MonthlyBudget(limit, self._month, spent or 0)
        found.budget.limit = limit

    def _put_aside(self, key: str, budget: MonthlyBudget | None) -> None:
        """Remember what a shadow has spent that has no budget any more: it may get one again."""
        if budget is not None and budget.month == self._month:
            self._others[key] = budget.spent + budget.reserved

    def of(self, project: str, upstream: str) -> Allowance | None:
        """Return what a shadow may use; None: as much as it likes."""
        return self._by_key.get(f"{project}/{upstream}")

    def spent_usd(self, project: str, upstream: str) -> float | None:
        """Return what a shadow with a budget has used this month, calls under way included; for people."""
        found = self.of(project, upstream)
        if found is None or found.budget is None:
            return None
        return (found.budget.spent + found.budget.reserved) / _UNIT

    def cost(
        self,
        project: str,
        network: str,
        payer: Upstream,
        method: Method,
        params: bytes,
        latest: int | None,
        *,
        outcome: str = "result",
        error_class: str = "",
        status: int = 200,
    ) -> int | None:
        """
        Return what a call costs in picodollars; None where no price is known.

        Args:
            payer: the upstream that is called.
            latest: the network's head, for vendors that charge more for old blocks.
            outcome, error_class, status: what came of it; as for a result before that is known.
        """
        charger, vendor, name = self._charger, payer.vendor, method.name
        behind = None
        if vendor and charger.needs_distance(vendor, name):
            reference = request_block(method, params) if params else NO_BLOCK
            behind = blocks_behind(method, reference, params, latest)
        own = charger.own_units(project, payer.id, name)
        archive = charger.has_archive(project, payer.id)
        at = int(time.time())
        charge = charger.charge(
            vendor, network, name, outcome, error_class, status, 1, at, behind, own, has_archive=archive
        )
        return charge.usd

    # --- the file -----------------------------------------------------------------------------------------------------

    def grant(self, allowance: Allowance, amount: int) -> bool:
        """Write down that a shadow may use so much; return whether that is on disk."""
        budget = allowance.budget
        assert budget is not None
        if not self._is_usable:
            return False
        if budget.month != self._month:
            self._month = budget.month
            self._others.clear()
        before, budget.granted = budget.granted, amount
        if not self._write():
            budget.granted = before
            return False
        return True

    def close(self) -> None:
        """Write what was really used: at the end of the process."""
        for found in self._by_key.values():
            if found.budget is not None:
                found.budget.granted = found.budget.spent + found.budget.reserved
        if self._is_usable and any(found.budget is not None for found in self._by_key.values()):
            self._write()

    def _read(self) -> None:
        try:
            spend = _decode(self._path.read_bytes())
            self._others = {key: round_amount(Decimal(usd)) for key, usd in spend.usd.items()}
            self._month = spend.month
        except FileNotFoundError:
            self._month = this_month()
        except (OSError, ValueError, ArithmeticError) as error:
            log.error("shadows with a budget get no copies: %s cannot be read (%s); remove it", self._path, error)
            return
        self._is_usable = True

    def _write(self) -> bool:
        usd = {
            key: found.budget.granted
            for key, found in self._by_key.items()
            if found.budget is not None and found.budget.month == self._month
        }
        text = {key: _decimal(amount) for key, amount in sorted({**self._others, **usd}.items())}
        beside = self._path.with_suffix(".new")
        try:
            beside.write_bytes(msgspec.json.encode(_Spend(self._month, text)))
            os.replace(beside, self._path)
        except OSError as error:
            log.error("shadows with a budget get no copies: %s cannot be written (%s)", self._path, error)
            return False
        return True


def is_limited(policy: ShadowPolicy) -> bool:
    """Say whether a rate or a budget is set."""
    return policy.max_per_second is not None or policy.monthly_budget_usd is not None


def charger_for(settings: Settings) -> Charger | None:
    """
    Return the price books at work; None where no shadow has a budget. Reads files.

    Raises:
        PriceBookError: a configured book cannot be read or used.
    """
    upstreams = [(p.id, u) for p in settings.projects for u in p.upstreams]
    if not any(u.shadow is not None and u.shadow.monthly_budget_usd is not None for _, u in upstreams):
        return None
    units = {
        (project, u.id): {method: Decimal(n) for method, n in u.credit_units.items()}
        for project, u in upstreams
        if u.credit_units
    }
    archives = {(project, u.id): u.has_archive for project, u in upstreams if u.has_archive is not None}
    return Charger(PriceBooks(shipped(), configured(settings.gnomon.pricing.files)), units, archives)


def this_month() -> str:
    """Return the month of now in UTC, as `2026-11`."""
    now = time.gmtime()
    return f"{now.tm_year:04d}-{now.tm_mon:02d}"


def _decimal(amount: int) -> str:
    whole, rest = divmod(amount, _UNIT)
    return f"{whole}.{rest:012d}"
