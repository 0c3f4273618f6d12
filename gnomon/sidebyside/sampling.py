"""
Which questions a chain asks of itself: a block leads to its transactions, these to accounts, slots and calls.

Everything here is a pure function of answers already given, so a run can be repeated. State is read at one final
height, the newest common one, because that is where a node without an archive still has it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

MAX_TRANSACTIONS: Final = 4
"""Per block that are looked at one by one."""
MAX_ADDRESSES: Final = 6
"""Per block whose state is read."""
MAX_SLOTS: Final = 4
"""Per block that are read beyond the first two of a contract."""
UNKNOWN_HASH: Final = "0x" + "00" * 31 + "01"
UNUSED_ADDRESS: Final = "0x00000000000000000000000000000000deadbe01"
UNUSED_SLOT: Final = "0x" + "00" * 31 + "09"

STRUCT_LOGS: Final[Mapping[str, object]] = {"limit": 40, "enableMemory": True, "enableReturnData": True}
"""Options of the default tracer: whole traces of a busy transaction would be many megabytes."""

METHODS: Final = (
    "eth_getBlockByNumber",
    "eth_getBlockByHash",
    "eth_getBlockReceipts",
    "eth_getBlockTransactionCountByNumber",
    "eth_getTransactionByHash",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionReceipt",
    "eth_getLogs",
    "eth_getBalance",
    "eth_getTransactionCount",
    "eth_getCode",
    "eth_getStorageAt",
    "eth_getProof",
    "eth_call",
    "eth_simulateV1",
    "eth_feeHistory",
    "debug_traceTransaction",
    "trace_block",
)
"""What a sample may hold."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One question; `family` is what an endpoint serves or does not serve as a whole."""

    method: str
    params: bytes
    """Raw JSON."""
    family: str = ""
    is_final: bool = False
    """Known to speak of final blocks only, whatever its parameters show."""

    @classmethod
    def final(cls, method: str, *params: object, variant: str = "") -> "Ask":
        """Return a question about final blocks."""
        return cls(method, msgspec.json.encode(params), method + variant, True)


def spread(first: int, last: int) -> Iterator[int]:
    """
    Give every height of a range once, newest and oldest first, then the middles of the gaps left, widest first.

    >>> list(spread(0, 6))
    [6, 0, 3, 1, 4, 2, 5]
    """
    if last < first:
        return
    yield last
    if first < last:
        yield first
    gaps = [(first, last)]
    while gaps:
        following = []
        for low, high in gaps:
            middle = (low + high) // 2
            if low < middle < high:
                yield middle
                following += [(low, middle), (middle, high)]
        gaps = following


@dataclass(slots=True)
class Sampler:
    """
    Gives the questions that follow from an answer, each only once in a run.

    Args:
        final: the height at which state is read.
        first: the lowest height that may be asked about.
    """

    final: int
    first: int = 0
    _addresses: set[str] = field(default_factory=set)
    _slots: set[tuple[str, str]] = field(default_factory=set)
    _calls: set[tuple[str, str]] = field(default_factory=set)

    def opening(self) -> list[Ask]:
        """Return questions that need no block: what is not there, and the fees."""
        at = hex(self.final)
        return [
            Ask.final("eth_getTransactionByHash", UNKNOWN_HASH),
            Ask.final("eth_getTransactionReceipt", UNKNOWN_HASH),
            Ask.final("eth_getBalance", UNUSED_ADDRESS, at),
            Ask.final("eth_getTransactionCount", UNUSED_ADDRESS, at),
            Ask.final("eth_getCode", UNUSED_ADDRESS, at),
            Ask.final("eth_getStorageAt", UNUSED_ADDRESS, "0x0", at),
            # without a block: the newest, at which an unused account is what it always was
            Ask.final("eth_getBalance", UNUSED_ADDRESS, variant=" without a block"),
            Ask.final("eth_getTransactionCount", UNUSED_ADDRESS, variant=" without a block"),
            Ask.final("eth_getCode", UNUSED_ADDRESS, variant=" without a block"),
            Ask.final("eth_getStorageAt", UNUSED_ADDRESS, "0x0", variant=" without a block"),
            Ask.final("eth_feeHistory", hex(min(8, self.final + 1)), at, [10, 50, 90]),
        ]

    def block(self, height: int) -> Ask:
        """Return the question with which everything about one height begins."""
        return Ask.final("eth_getBlockByNumber", hex(height), True)

    def after_block(self, block: Mapping[str, Any], same_hash: bool) -> list[Ask]:
        """
        Return what one block leads to.

        Args:
            block: with whole transactions, as the primary gave it.
            same_hash: the shadow has the same block, so that questions by its hash are fair.
        """
        at = str(block.get("number", "0x0"))
        height = int(at, 16)
        asks = [
            Ask.final("eth_getBlockByNumber", at, False),
            Ask.final("eth_getBlockReceipts", at),
            Ask.final("eth_getLogs", {"fromBlock": at, "toBlock": at}),
            Ask.final("eth_getBlockTransactionCountByNumber", at),
            Ask.final("trace_block", at),
        ]
        if same_hash and block.get("hash"):
            asks.append(Ask.final("eth_getBlockByHash", block["hash"], False))
            asks.append(Ask.final("eth_getLogs", {"blockHash": block["hash"]}, variant=" by hash"))
        transactions = [t for t in block.get("transactions") or [] if isinstance(t, dict) and t.get("hash")]
        for transaction in _some(transactions, MAX_TRANSACTIONS):
            asks += self._about_transaction(transaction, at)
        for transaction in [t for t in transactions if t.get("to") and _input(t) != "0x"][:1]:
            asks.append(Ask.final("debug_traceTransaction", transaction["hash"], STRUCT_LOGS, variant=" structLogs"))
            simulation = {"blockStateCalls": [{"calls": [_replay(transaction)]}]}
            asks.append(Ask.final("eth_simulateV1", simulation, hex(self.final)))
        if transactions and height > self.first:
            asks.append(Ask.final("eth_getLogs", {"fromBlock": hex(max(self.first, height - 9)), "toBlock": at}))
        addresses = [str(block["miner"])] if block.get("miner") else []
        addresses += [str(a) for t in transactions for a in (t.get("to"), t.get("from")) if a]
        asks += self._about_addresses(addresses)
        for transaction in transactions:
            for entry in transaction.get("accessList") or []:
                asks += self._about_slots(str(entry.get("address")), entry.get("storageKeys") or [])
        return asks

    def _about_transaction(self, transaction: Mapping[str, Any], at: str) -> list[Ask]:
        tx_hash = transaction["hash"]
        asks = [
            Ask.final("eth_getTransactionByHash", tx_hash),
            Ask.final("eth_getTransactionReceipt", tx_hash),
            Ask.final("debug_traceTransaction", tx_hash, {"tracer": "callTracer"}, variant=" callTracer"),
            Ask.final("debug_traceTransaction", tx_hash, {"tracer": "prestateTracer"}, variant=" prestateTracer"),
        ]
        if transaction.get("transactionIndex"):
            asks.append(Ask.final("eth_getTransactionByBlockNumberAndIndex", at, transaction["transactionIndex"]))
        call = (str(transaction.get("to")), _input(transaction))
        if transaction.get("to") and call not in self._calls:
            self._calls.add(call)
            asks.append(Ask.final("eth_call", _replay(transaction), hex(self.final)))
        return asks

    def after_logs(self, logs: Sequence[Mapping[str, Any]]) -> list[Ask]:
        """Return what a list of logs leads to: the emitters' state, and the same logs through the filters."""
        asks = []
        for log in _some([log for log in logs if isinstance(log, dict)], 2):
            address, at = log.get("address"), log.get("blockNumber")
            topics = log.get("topics") or []
            if not address or not at:
                continue
            new = str(address).lower() not in self._addresses
            asks += self._about_addresses([str(address)], is_contract=True)
            if new and topics:
                about = {"fromBlock": at, "toBlock": at, "address": address, "topics": [topics[0]]}
                asks.append(Ask.final("eth_getLogs", about))
        return asks

    def after_prestate(self, accounts: Mapping[str, Any]) -> list[Ask]:
        """Return reads of the slots that a transaction touched, from the prestate tracer's answer."""
        asks = []
        for address, account in accounts.items():
            if isinstance(account, dict) and isinstance(account.get("storage"), dict):
                asks += self._about_slots(address, list(account["storage"]))
        return asks

    def _about_addresses(self, addresses: Sequence[str], is_contract: bool = False) -> list[Ask]:
        at = hex(self.final)
        asks = []
        new = [a for a in dict.fromkeys(a.lower() for a in addresses) if a not in self._addresses]
        for address in new[:MAX_ADDRESSES]:
            self._addresses.add(address)
            asks += [
                Ask.final("eth_getBalance", address, at),
                Ask.final("eth_getCode", address, at),
                Ask.final("eth_getTransactionCount", address, at),
                Ask.final("eth_getStorageAt", address, "0x0", at),
            ]
            if is_contract:
                asks.append(Ask.final("eth_getStorageAt", address, UNUSED_SLOT, at))
                asks.append(Ask.final("eth_getProof", address, ["0x" + "00" * 32], at))
        return asks

    def _about_slots(self, address: str, slots: Sequence[str]) -> list[Ask]:
        new = [slot for slot in slots if (address.lower(), slot) not in self._slots][:MAX_SLOTS]
        self._slots.update((address.lower(), slot) for slot in new)
        asks = [Ask.final("eth_getStorageAt", address, slot, hex(self.final)) for slot in new]
        if new:
            asks.append(Ask.final("eth_getProof", address, new, hex(self.final)))
        return asks


def _input(transaction: Mapping[str, Any]) -> str:
    return str(transaction.get("input") or transaction.get("data") or "0x")


def _replay(transaction: Mapping[str, Any]) -> dict[str, Any]:
    """Return a transaction as a call: without price and nonce, so that it can be run on another block."""
    return {key: transaction[key] for key in ("from", "to", "value", "input") if transaction.get(key)}


def _some(items: Sequence[Any], count: int) -> list[Any]:
    """Return at most `count` items spread over a list, first and last among them."""
    if len(items) <= count:
        return list(items)
    return [items[i * (len(items) - 1) // (count - 1)] for i in range(count)]
