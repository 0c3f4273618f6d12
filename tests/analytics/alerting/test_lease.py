"""Of several services one tells: never two at once, and never none for long, whatever is killed, paused or cut off."""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from analytics.alerting.lease import LEASE_SECONDS, RENEW_SECONDS, SETTLE_SECONDS, VALID_SECONDS, Lease, View

NOBODY = View()


def test_the_first_one_leads_after_a_moment() -> None:
    """Long enough to see another that starts with it."""
    lease = Lease("a")
    assert lease.next(0, 0, NOBODY) == "claim"
    lease.claimed(0.1, NOBODY)
    mine = View(1, "a", beat=1)

    assert lease.next(SETTLE_SECONDS, SETTLE_SECONDS, mine) == "wait"
    assert not lease.may_act(SETTLE_SECONDS)
    assert lease.next(SETTLE_SECONDS + 0.1, SETTLE_SECONDS + 0.1, mine) == "lead"
    assert lease.may_act(SETTLE_SECONDS + 0.1)


def test_of_two_that_start_together_the_greater_one_leads() -> None:
    """The lower one stands by; the greater has seen the other's claim and waits until it cannot act any more."""
    low, high = Lease("a"), Lease("b")
    for lease in (low, high):
        assert lease.next(0, 0, NOBODY) == "claim"
        lease.claimed(0, NOBODY)
    both = View(1, "b", beat=1, is_contested=True, n_others=1)

    assert low.next(1.5, 1.5, both) == "wait"
    assert low.role == "standing_by"
    assert high.next(1.5, 1.5, both) == "wait"
    assert high.next(5, 5, both) == "renew"
    high.renewed(5)
    assert high.next(VALID_SECONDS, VALID_SECONDS, both) == "lead"


def test_who_leads_renews_and_may_act_so_long() -> None:
    """Beyond that only where nobody else can have taken the lead."""
    lease = led("a", at=10)
    with_others = View(1, "a", beat=2, n_others=1)

    assert lease.next(10 + RENEW_SECONDS, 10 + RENEW_SECONDS, with_others) == "renew"
    lease.renewed(14)
    assert lease.next(15, 15, with_others) == "wait"
    assert lease.may_act(15 + VALID_SECONDS - 0.1)
    assert not lease.may_act(15 + VALID_SECONDS)
    assert lease.next(15, 15, View(1, "a", beat=3)) == "wait"
    assert lease.may_act(10_000)


def led(holder: str, at: float) -> Lease:
    """Return a lease that leads since a time."""
    lease = Lease(holder)
    lease.next(at, at, NOBODY)
    lease.claimed(at, NOBODY)
    lease.next(at + SETTLE_SECONDS, at + SETTLE_SECONDS, View(1, holder, beat=1))
    assert lease.role == "leading"
    return lease


def test_an_answer_is_as_old_as_its_question() -> None:
    """A service that was paused between the two may not act on it: somebody may have claimed meanwhile."""
    lease = led("a", at=0)

    assert lease.next(60, 5, View(1, "a", beat=2, n_others=1)) == "renew"
    lease.renewed(60)
    assert not lease.may_act(60)


def test_a_greater_claim_ends_the_lead_at_once() -> None:
    """Also one of the same epoch."""
    lease = led("a", at=0)

    assert lease.next(2, 2, View(1, "b", n_others=1)) == "step_down"
    assert (lease.role, lease.may_act(2)) == ("standing_by", False)


def test_silence_counts_only_while_the_store_answers() -> None:
    """A store that was away says nothing of who lives; each new row begins the waiting anew."""
    lease, seen = Lease("b"), View(1, "a", beat=5, n_others=1)
    assert lease.next(0, 0, seen) == "wait"
    assert lease.next(LEASE_SECONDS - 1, LEASE_SECONDS - 1, seen) == "wait"
    lease.lost_sight()
    assert lease.next(100, 100, seen) == "wait"
    assert lease.next(100 + LEASE_SECONDS - 0.1, 100 + LEASE_SECONDS - 0.1, View(1, "a", beat=6, n_others=1)) == "wait"
    assert lease.next(100 + LEASE_SECONDS * 2, 100 + LEASE_SECONDS * 2, View(1, "a", beat=6, n_others=1)) == "claim"
    lease.claimed(200, View(1, "a", beat=6))

    assert lease.epoch == 2
    assert lease.next(200 + VALID_SECONDS - 0.1, 200 + VALID_SECONDS - 0.1, View(2, "b")) == "renew"
    assert lease.next(200 + VALID_SECONDS, 200 + VALID_SECONDS, View(2, "b")) == "lead"


@pytest.mark.parametrize("view", [View(7, "a", "", "released", n_others=1), View(7, "b", "", "leading", 9)])
def test_what_was_given_up_or_was_mine_is_taken_at_once(view: View) -> None:
    """The last life over the same folder led, and is surely gone."""
    lease = Lease("b")

    assert lease.next(0, 0, view) == "claim"
    lease.claimed(0, view)
    assert lease.epoch == 8
    assert lease.next(SETTLE_SECONDS, SETTLE_SECONDS, View(8, "b")) == "lead"


def test_a_claim_of_the_last_life_is_no_lead() -> None:
    """It had not waited yet for whoever led before: this life waits."""
    lease, view = Lease("b"), View(7, "b", "", "claiming", 1)
    assert lease.next(0, 0, view) == "claim"
    lease.claimed(0, view)

    assert lease.next(SETTLE_SECONDS, SETTLE_SECONDS, View(8, "b")) == "wait"
    assert lease.next(VALID_SECONDS, VALID_SECONDS, View(8, "b")) == "lead"


# --- many lives -------------------------------------------------------------------------------------------------------


@dataclass
class Store:
    """Rows as the table holds them."""

    rows: list[tuple[float, int, str, str]] = field(default_factory=list)
    is_away: bool = False

    def view(self, now: float, holder: str) -> View:
        claims = {(epoch, name) for _, epoch, name, _ in self.rows if epoch}
        n_others = len({name for at, _, name, _ in self.rows if name != holder and at > now - 60})
        if not claims:
            return View(n_others=n_others)
        epoch, name = max(claims)
        own = [(at, state) for at, e, n, state in self.rows if (e, n) == (epoch, name)]
        is_contested = len([c for c in claims if c[0] == epoch]) > 1
        return View(epoch, name, "", max(own)[1], len(own), is_contested, n_others)


@dataclass
class Member:
    lease: Lease
    is_dead: bool = False
    paused_until: float = 0.0
    cut_off_until: float = 0.0


class World:
    """Services that ask and write with delays, and what befalls them; who may act is looked at all the time."""

    def __init__(self, seed: int, n: int) -> None:
        self.chance = random.Random(seed)
        self.now = 0.0
        self.store = Store()
        self.members = [Member(Lease(f"{self.chance.getrandbits(32):08x}")) for _ in range(n)]
        self.overlaps: list[float] = []
        self.idle_since = 0.0
        self.longest_idle = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._n = 0

    def at(self, when: float, what: Callable[[], None]) -> None:
        self._n += 1
        heapq.heappush(self._due, (when, self._n, what))

    def run(self, seconds: float) -> None:
        for member in self.members:
            self.at(self.chance.random() * 3, lambda m=member: self.ask(m))  # type: ignore[misc]
        while self._due and self._due[0][0] < seconds:
            when, _, what = heapq.heappop(self._due)
            self.look(when)
            self.now = when
            what()
            self.look(when)

    def look(self, now: float) -> None:
        """Note whether two may act, and for how long none could although one lived and the store was there."""
        for at in (now, (now + self.now) / 2):
            acting = [m for m in self.members if not m.is_dead and m.paused_until <= at and m.lease.may_act(at)]
            if len(acting) > 1:
                self.overlaps.append(at)
        able = [m for m in self.members if not m.is_dead and max(m.paused_until, m.cut_off_until) <= now]
        if acting or self.store.is_away or len(able) < len([m for m in self.members if not m.is_dead]):
            self.idle_since = now
        self.longest_idle = max(self.longest_idle, now - self.idle_since)

    def delay(self) -> float:
        return self.chance.choice((0.02, 0.05, 0.3, 2.5))

    def ask(self, member: Member) -> None:
        """Read the view after a delay, decide, write after another; then again in a second."""
        if member.is_dead:
            return
        if member.paused_until > self.now:
            self.at(member.paused_until, lambda: self.ask(member))
            return
        if self.store.is_away or member.cut_off_until > self.now:
            member.lease.lost_sight()
            self.at(self.now + 1, lambda: self.ask(member))
            return
        view = self.store.view(self.now, member.lease.holder)
        asked_at = self.now
        self.at(self.now + self.delay(), lambda: self.decide(member, view, asked_at))

    def decide(self, member: Member, view: View, asked_at: float) -> None:
        if member.is_dead:
            return
        if member.paused_until > self.now:
            self.at(member.paused_until, lambda: self.decide(member, view, asked_at))
            return
        action = member.lease.next(self.now, asked_at, view)
        if action in ("claim", "renew", "lead"):
            self.at(self.now + self.delay(), lambda: self.write(member, view, action))
        else:
            if member.lease.role == "standing_by":
                self.store.rows.append((self.now, 0, member.lease.holder, "standing_by"))
            self.at(self.now + 1, lambda: self.ask(member))

    def write(self, member: Member, view: View, action: str) -> None:
        if member.is_dead and self.chance.random() < 0.5:
            return  # the other half was sent and arrives late
        if self.store.is_away or member.cut_off_until > self.now:
            self.at(self.now + 1, lambda: self.ask(member))
            return
        epoch = view.epoch + 1 if action == "claim" else member.lease.epoch
        state = "claiming" if action == "claim" else member.lease.role
        self.store.rows.append((self.now, epoch, member.lease.holder, state))
        if member.is_dead:
            return
        if self.chance.random() < 0.05:  # stored, and nobody was told so
            member.lease.lost_sight()
        elif action == "claim":
            member.lease.claimed(self.now, view)
        else:
            member.lease.renewed(self.now)
        self.at(self.now + 1, lambda: self.ask(member))

    def harm(self) -> None:
        """Do something bad to somebody."""
        member = self.chance.choice(self.members)
        match self.chance.choice(("kill", "pause", "cut", "away", "restart")):
            case "kill" if len([m for m in self.members if not m.is_dead]) > 1:
                member.is_dead = True
            case "restart" if not member.is_dead:
                holder, member.is_dead = member.lease.holder, True
                again = Member(Lease(holder))
                self.members.append(again)
                self.at(self.now + self.delay(), lambda: self.ask(again))
            case "pause":
                member.paused_until = self.now + self.chance.choice((3, 20, 60))
            case "cut":
                member.cut_off_until = self.now + self.chance.choice((3, 20, 60))
            case "away":
                self.store.is_away = True
                self.at(self.now + self.chance.choice((2, 15, 40)), self.back)

    def back(self) -> None:
        self.store.is_away = False


@pytest.mark.parametrize("seed", range(60))
def test_never_two_act_and_never_none_for_long(seed: int) -> None:
    """Killed, paused, cut off, restarted; stores that go away; late answers, writes that arrive after death."""
    world = World(seed, n=2 + seed % 3)
    for number in range(12):
        world.at(30 + number * 45 + world.chance.random() * 30, world.harm)
    world.run(700)

    assert world.overlaps == []
    assert world.longest_idle < 2 * (LEASE_SECONDS + VALID_SECONDS) + 25  # two may die in a row
    assert any(m.lease.role == "leading" for m in world.members if not m.is_dead)


def test_the_world_notices_two_that_act() -> None:
    """Two leases that both lead are an overlap."""
    world = World(0, 2)
    for member in world.members:
        member.lease = led(member.lease.holder, at=0)
    world.look(1.0)

    assert world.overlaps
