"""
The mix of calls that a wallet, an indexer and a bot would make, at a steady rate, through the proxy.

Most calls speak of final heights, so that differences are real ones; some follow the newest block.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gnomon.demo import contract
from gnomon.demo.clients import CallFailed, Client

N_KEYS: Final = 8


@dataclass(slots=True)
class Scene:
    """What the calls may speak of; the run keeps `height` up to date."""

    register: str
    accounts: Sequence[str]
    height: int
    hashes: list[str] = field(default_factory=list)
    """Transactions seen so far; each list operation is atomic, so threads share it."""

    @property
    def final(self) -> int:
        """A height that is final at every node of the demonstration."""
        return max(1, self.height - 4)


Call = Callable[[Client, Scene, random.Random], object]


def _height(scene: Scene, dice: random.Random) -> int:
    return dice.randint(1, scene.final)


def _block(client: Client, scene: Scene, dice: random.Random) -> object:
    block = client.block(_height(scene, dice), dice.random() < 0.3)
    for transaction in (block or {}).get("transactions", ()):
        _remember(scene, transaction)
    return block


def _remember(scene: Scene, transaction: Any) -> None:
    """Keep a transaction's hash for later calls; a block lists hashes or whole transactions."""
    value = transaction["hash"] if hasattr(transaction, "keys") else transaction
    text = value if isinstance(value, str) else "0x" + bytes(value).hex()
    if len(scene.hashes) < 500:
        scene.hashes.append(text)


def _latest(client: Client, scene: Scene, dice: random.Random) -> object:
    return client.block("latest", False)


def _transaction(client: Client, scene: Scene, dice: random.Random) -> object:
    return client.transaction(dice.choice(scene.hashes)) if scene.hashes else _block(client, scene, dice)


def _receipt(client: Client, scene: Scene, dice: random.Random) -> object:
    return client.receipt(dice.choice(scene.hashes)) if scene.hashes else _block(client, scene, dice)


def _logs(client: Client, scene: Scene, dice: random.Random) -> object:
    first = _height(scene, dice)
    return client.logs({"fromBlock": first, "toBlock": min(first + 3, scene.final), "address": scene.register})


def _balance(client: Client, scene: Scene, dice: random.Random) -> object:
    return client.balance(dice.choice(scene.accounts), _height(scene, dice) if dice.random() < 0.8 else "latest")


def _storage(client: Client, scene: Scene, dice: random.Random) -> object:
    return client.storage(scene.register, dice.randrange(N_KEYS), _height(scene, dice))


def _get(client: Client, scene: Scene, dice: random.Random) -> object:
    request = {"to": scene.register, "data": contract.get_call(dice.randrange(N_KEYS))}
    return client.call(request, _height(scene, dice) if dice.random() < 0.8 else "latest")


def _environment(client: Client, scene: Scene, dice: random.Random) -> object:
    return client.call({"to": scene.register, "data": "0x" + contract.ENV}, _height(scene, dice))


def _revert(client: Client, scene: Scene, dice: random.Random) -> object:
    return client.call({"to": scene.register, "data": "0x" + contract.FAIL}, _height(scene, dice))


def _estimate(client: Client, scene: Scene, dice: random.Random) -> object:
    data = contract.set_call(dice.randrange(N_KEYS), dice.randint(1, 10**6))
    return client.estimate({"from": scene.accounts[0], "to": scene.register, "data": data})


MIX: Final[tuple[tuple[int, str, Call], ...]] = (
    (22, "a block", _block),
    (4, "the newest block", _latest),
    (4, "receipts of a block", lambda client, scene, dice: client.block_receipts(_height(scene, dice))),
    (10, "a transaction", _transaction),
    (14, "a receipt", _receipt),
    (12, "logs", _logs),
    (8, "a balance", _balance),
    (3, "a nonce", lambda client, scene, dice: client.nonce(dice.choice(scene.accounts), _height(scene, dice))),
    (2, "code", lambda client, scene, dice: client.code(scene.register, _height(scene, dice))),
    (6, "storage", _storage),
    (8, "a call", _get),
    (2, "a call about the block", _environment),
    (3, "a call that reverts", _revert),
    (3, "a gas estimate", _estimate),
    (1, "the fee history", lambda client, scene, dice: client.fee_history(4, _height(scene, dice))),
    (2, "a batch of blocks", lambda client, scene, dice: client.batch([_height(scene, dice) for _ in range(5)])),
)
"""Weight, what it is, and the call."""


class Traffic:
    """
    Threads that call at `per_second` together until `stop`: each kind of call once, then by weight.

    A failed call is counted and the traffic goes on; `calls`, `failed` and `last_failure` are for the summary.
    """

    def __init__(
        self, open_client: Callable[[], Client], scene: Scene, *, per_second: float, threads: int = 3, seed: int = 1
    ) -> None:
        self._open_client = open_client
        self._scene = scene
        self._interval = threads / per_second
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(random.Random(seed + i),), name=f"traffic-{i}", daemon=True)
            for i in range(threads)
        ]
        self._lock = threading.Lock()
        self.calls = 0
        self.failed = 0
        """Without the calls that ask for a revert."""
        self.last_failure = ""

    def start(self) -> None:
        """Start calling; returns at once."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask the threads to end after their call in flight; returns at once."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        """Wait for the threads, together at most `seconds`."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, end - time.monotonic()))

    def _run(self, dice: random.Random) -> None:
        client = self._open_client()
        weights = [weight for weight, _, _ in MIX]
        first = dice.sample(MIX, len(MIX))
        due = time.monotonic()
        while not self._stop.is_set():
            _, _, call = first.pop() if first else dice.choices(MIX, weights)[0]
            failure = ""
            try:
                call(client, self._scene, dice)
            except CallFailed as exc:
                failure = "" if call is _revert else str(exc)
            with self._lock:
                self.calls += 1
                if failure:
                    self.failed += 1
                    self.last_failure = failure
            due = max(due + self._interval, time.monotonic() - 1.0)
            self._stop.wait(max(0.0, due - time.monotonic()))
        client.close()
