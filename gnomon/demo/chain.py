"""
The simulated chain: blocks, transactions, receipts, logs, state and calls, by rule and without a node.

It is a stand-in for nodes where none can be had, and says so (`web3_clientVersion`). The same seed and the same
timestamps give the same chain, so that two instances advanced alike agree in every answer. Hashes are SHA3-256, not
Keccak, and nothing is signed: no client checks either.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gnomon.demo import contract

Json = object
N_ACCOUNTS: Final = 6
BASE_FEE: Final = 1_000_000_000
TIP: Final = 100_000_000
MAX_FEE: Final = 100_000_000_000
GAS_LIMIT: Final = 30_000_000
INITIAL_BALANCE: Final = 10_000 * 10**18
FINAL_DEPTH: Final = 2
"""Blocks between the newest and the finalized one."""
N_KEYS: Final = 8
"""Keys of the register that the chain's own transactions write."""


class RpcFault(Exception):
    """A JSON-RPC error as the node's answer."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class _History:
    """Values of one cell by height."""

    __slots__ = ("heights", "values")

    def __init__(self) -> None:
        self.heights: list[int] = []
        self.values: list[int] = []

    def set(self, height: int, value: int) -> None:
        if self.heights and self.heights[-1] == height:
            self.values[-1] = value
        else:
            self.heights.append(height)
            self.values.append(value)

    def at(self, height: int, default: int = 0) -> int:
        index = bisect_right(self.heights, height)
        return self.values[index - 1] if index else default


def digest(*parts: object) -> bytes:
    """Return 32 bytes that depend on all `parts`."""
    return hashlib.sha3_256("/".join(map(str, parts)).encode()).digest()


def hash_hex(*parts: object) -> str:
    """Return `digest` as 0x and 64 hex digits."""
    return "0x" + digest(*parts).hex()


ACCOUNTS: Final = tuple("0x" + digest("account", i).hex()[:40] for i in range(N_ACCOUNTS))
REGISTER: Final = "0x" + digest("register").hex()[:40]
COINBASE: Final = "0x" + "00" * 20
_EMPTY_BLOOM: Final = "0x" + "00" * 256


class Chain:
    """
    One instance of the chain.

    Args:
        seed: decides the transactions.
        chain_id: EIP-155 id.
        genesis_time: seconds since 1970 of block 0.
        name: shown in `web3_clientVersion`.
    """

    def __init__(self, *, seed: str, chain_id: int, genesis_time: int, name: str) -> None:
        self._seed = seed
        self._chain_id = chain_id
        self._name = name
        self._blocks: list[dict[str, Json]] = []
        self._receipts: list[list[dict[str, Json]]] = []
        self._transactions: dict[str, dict[str, Json]] = {}
        self._receipt_by_hash: dict[str, dict[str, Json]] = {}
        self._number_by_hash: dict[str, int] = {}
        self._balances: dict[str, _History] = {account: _History() for account in ACCOUNTS}
        self._nonces: dict[str, _History] = {}
        self._storage: dict[tuple[str, int], _History] = {}
        for history in self._balances.values():
            history.set(0, INITIAL_BALANCE)
        self._seal(genesis_time, [], [])

    @property
    def height(self) -> int:
        """The newest block's number."""
        return len(self._blocks) - 1

    @property
    def finalized(self) -> int:
        """The newest finalized block's number."""
        return max(0, self.height - FINAL_DEPTH)

    def mine(self, timestamp: int) -> int:
        """
        Add one block with its transactions; return its number.

        Raises:
            ValueError: `timestamp` is not after the newest block's.
        """
        if timestamp <= int(str(self._blocks[-1]["timestamp"]), 16):
            raise ValueError(f"timestamp {timestamp} is not after the newest block's")
        height = self.height + 1
        transactions: list[dict[str, Json]] = []
        receipts: list[dict[str, Json]] = []
        for index, (sender, to, value, data, gas_used, ok) in enumerate(self._plan(height)):
            self._run(height, index, transactions, receipts, sender, to, value, data, gas_used, ok)
        self._seal(timestamp, transactions, receipts)
        return height

    def _plan(self, height: int) -> list[tuple[str, str | None, int, str, int, bool]]:
        """Return (sender, to, value, data, gas used, succeeds) of the block's transactions."""
        dice = digest(self._seed, height)
        sender = ACCOUNTS[dice[0] % N_ACCOUNTS]
        other = ACCOUNTS[(dice[0] + 1 + dice[1] % (N_ACCOUNTS - 1)) % N_ACCOUNTS]
        if height == 1:
            return [(ACCOUNTS[0], None, 0, contract.creation_code(), 110_000, True)]
        key, stored = dice[2] % N_KEYS, 1 + int.from_bytes(dice[3:7], "big")
        plan: list[tuple[str, str | None, int, str, int, bool]] = [
            (sender, REGISTER, 0, contract.set_call(key, stored), 45_000 + dice[7], True),
            (other, sender, 1 + int.from_bytes(dice[8:14], "big"), "0x", 21_000, True),
        ]
        if dice[14] % 2:
            plan.append(
                (other, REGISTER, 0, contract.set_call((key + 1) % N_KEYS, stored + 1), 28_000 + dice[15], True)
            )
        if height % 4 == 0:
            plan.append((sender, REGISTER, 0, "0x" + contract.FAIL, 21_200, False))
        return plan

    def _run(
        self,
        height: int,
        index: int,
        transactions: list[dict[str, Json]],
        receipts: list[dict[str, Json]],
        sender: str,
        to: str | None,
        value: int,
        data: str,
        gas_used: int,
        ok: bool,
    ) -> None:
        nonces = self._nonces.setdefault(sender, _History())
        nonce = nonces.at(height)
        nonces.set(height, nonce + 1)
        self._add(sender, height, -value - gas_used * (BASE_FEE + TIP))
        if to in self._balances:
            self._add(str(to), height, value)
        tx_hash = hash_hex("tx", self._seed, height, index)
        transactions.append(
            {
                "hash": tx_hash,
                "type": "0x2",
                "chainId": hex(self._chain_id),
                "nonce": hex(nonce),
                "transactionIndex": hex(index),
                "from": sender,
                "to": to,
                "value": hex(value),
                "input": data,
                "gas": hex(gas_used + 20_000),
                "gasPrice": hex(BASE_FEE + TIP),
                "maxFeePerGas": hex(MAX_FEE),
                "maxPriorityFeePerGas": hex(TIP),
                "accessList": [],
                "yParity": hex(digest("v", tx_hash)[0] % 2),
                "v": hex(digest("v", tx_hash)[0] % 2),
                "r": hash_hex("r", tx_hash),
                "s": hash_hex("s", tx_hash),
            }
        )
        logs: list[dict[str, Json]] = []
        if ok and to == REGISTER:
            key, stored = int(data[10:74], 16), int(data[74:138], 16)
            self._storage.setdefault((REGISTER, key), _History()).set(height, stored)
            logs.append(
                {
                    "address": REGISTER,
                    "topics": [contract.SET_TOPIC, "0x" + contract.word(key)],
                    "data": "0x" + contract.word(stored),
                    "logIndex": hex(sum(len(_list(r["logs"])) for r in receipts)),
                    "transactionHash": tx_hash,
                    "transactionIndex": hex(index),
                    "removed": False,
                }
            )
        before = int(str(receipts[-1]["cumulativeGasUsed"]), 16) if receipts else 0
        receipts.append(
            {
                "transactionHash": tx_hash,
                "transactionIndex": hex(index),
                "type": "0x2",
                "from": sender,
                "to": to,
                "contractAddress": REGISTER if to is None else None,
                "status": "0x1" if ok else "0x0",
                "gasUsed": hex(gas_used),
                "cumulativeGasUsed": hex(before + gas_used),
                "effectiveGasPrice": hex(BASE_FEE + TIP),
                "logs": logs,
                "logsBloom": _EMPTY_BLOOM,
            }
        )

    def _add(self, account: str, height: int, amount: int) -> None:
        history = self._balances[account]
        history.set(height, history.at(height) + amount)

    def _seal(self, timestamp: int, transactions: list[dict[str, Json]], receipts: list[dict[str, Json]]) -> None:
        number = len(self._blocks)
        block_hash = hash_hex("block", self._seed, number, timestamp)
        place: dict[str, Json] = {"blockHash": block_hash, "blockNumber": hex(number)}
        for transaction, receipt in zip(transactions, receipts, strict=True):
            transaction.update(place)
            receipt.update(place)
            for log in _list(receipt["logs"]):
                assert isinstance(log, dict)
                log.update(place, blockTimestamp=hex(timestamp))
            self._transactions[str(transaction["hash"])] = transaction
            self._receipt_by_hash[str(transaction["hash"])] = receipt
        self._number_by_hash[block_hash] = number
        self._receipts.append(receipts)
        self._blocks.append(
            {
                "number": hex(number),
                "hash": block_hash,
                "parentHash": self._blocks[-1]["hash"] if self._blocks else "0x" + "00" * 32,
                "timestamp": hex(timestamp),
                "nonce": "0x0000000000000000",
                "sha3Uncles": hash_hex("uncles"),
                "logsBloom": _EMPTY_BLOOM,
                "transactionsRoot": hash_hex("transactions", block_hash),
                "stateRoot": hash_hex("state", block_hash),
                "receiptsRoot": hash_hex("receipts", block_hash),
                "miner": COINBASE,
                "difficulty": "0x0",
                "extraData": "0x",
                "size": hex(600 + 180 * len(transactions)),
                "gasLimit": hex(GAS_LIMIT),
                "gasUsed": receipts[-1]["cumulativeGasUsed"] if receipts else "0x0",
                "baseFeePerGas": hex(BASE_FEE),
                "mixHash": hash_hex("mix", number),
                "uncles": [],
                "withdrawals": [],
                "transactions": transactions,
            }
        )

    def answer(self, method: str, params: Sequence[Json]) -> Json:
        """
        Return the result of one call.

        Raises:
            RpcFault: the node's error answer; -32601 for a method that is not there, -32602 for bad parameters.
        """
        handler = _HANDLERS.get(method)
        if handler is None:
            raise RpcFault(-32601, f"the method {method} does not exist/is not available")
        try:
            return handler(self, params)
        except (IndexError, ValueError, TypeError, AttributeError) as exc:
            raise RpcFault(-32602, f"invalid params of {method}: {exc}") from exc

    def _height_of(self, reference: Json) -> int:
        """
        Return the height that a block parameter means; it may be above the newest block.

        Raises:
            RpcFault: a hash that is not known.
        """
        if isinstance(reference, dict):
            if "blockHash" not in reference:
                return self._height_of(reference["blockNumber"])
            number = self._number_by_hash.get(str(reference["blockHash"]))
            if number is None:
                raise RpcFault(-32000, "header for hash not found")
            return number
        tags = {"latest": self.height, "pending": self.height, "earliest": 0}
        tags |= {"finalized": self.finalized, "safe": min(self.height, self.finalized + 1)}
        name = str(reference)
        return tags[name] if name in tags else int(name, 16)

    def _state_height(self, params: Sequence[Json], position: int) -> int:
        height = self._height_of(params[position] if len(params) > position else "latest")
        if height > self.height:
            raise RpcFault(-32000, "header not found")
        return height

    def _block(self, number: int, full: bool) -> Json:
        if not 0 <= number <= self.height:
            return None
        block = self._blocks[number]
        if full:
            return block
        return {**block, "transactions": [t["hash"] for t in _dicts(block["transactions"])]}

    def _block_by_number(self, params: Sequence[Json]) -> Json:
        return self._block(self._height_of(params[0]), bool(params[1]) if len(params) > 1 else False)

    def _block_by_hash(self, params: Sequence[Json]) -> Json:
        number = self._number_by_hash.get(str(params[0]), -1)
        return self._block(number, bool(params[1]) if len(params) > 1 else False)

    def _block_receipts(self, params: Sequence[Json]) -> Json:
        number = self._height_of(params[0])
        return self._receipts[number] if 0 <= number <= self.height else None

    def _transaction_count_of_block(self, params: Sequence[Json]) -> Json:
        number = self._height_of(params[0])
        return hex(len(self._receipts[number])) if 0 <= number <= self.height else None

    def _transaction_at(self, params: Sequence[Json]) -> Json:
        number, index = self._height_of(params[0]), int(str(params[1]), 16)
        if not 0 <= number <= self.height:
            return None
        transactions = _dicts(self._blocks[number]["transactions"])
        return transactions[index] if index < len(transactions) else None

    def _logs(self, params: Sequence[Json]) -> Json:
        wanted = params[0]
        assert isinstance(wanted, dict)
        if "blockHash" in wanted:
            first = last = self._height_of({"blockHash": wanted["blockHash"]})
        else:
            first = self._height_of(wanted.get("fromBlock", "latest"))
            last = min(self._height_of(wanted.get("toBlock", "latest")), self.height)
        if first > last + 1:
            raise RpcFault(-32602, "invalid block range params")
        receipts = [r for number in range(max(0, first), last + 1) for r in self._receipts[number]]
        return [log for r in receipts for log in _dicts(r["logs"]) if _log_fits(log, wanted)]

    def _code_at(self, address: str, height: int) -> str:
        return contract.runtime_code() if address.lower() == REGISTER and height >= 1 else "0x"

    def _code(self, params: Sequence[Json]) -> Json:
        return self._code_at(str(params[0]), self._state_height(params, 1))

    def _balance(self, params: Sequence[Json]) -> Json:
        history = self._balances.get(str(params[0]).lower())
        height = self._state_height(params, 1)
        return hex(history.at(height)) if history else "0x0"

    def _nonce(self, params: Sequence[Json]) -> Json:
        history = self._nonces.get(str(params[0]).lower())
        height = self._state_height(params, 1)
        return hex(history.at(height)) if history else "0x0"

    def _storage_at(self, params: Sequence[Json]) -> Json:
        history = self._storage.get((str(params[0]).lower(), int(str(params[1]), 16)))
        height = self._state_height(params, 2)
        return "0x" + contract.word(history.at(height) if history else 0)

    def _call(self, params: Sequence[Json]) -> Json:
        request = params[0]
        assert isinstance(request, dict)
        height = self._state_height(params, 1)
        data = str(request.get("data") or request.get("input") or "0x")[2:]
        if self._code_at(str(request.get("to")), height) == "0x" or not data:
            return "0x"
        selector, arguments = data[:8], data[8:]
        if selector == contract.SET:
            return "0x"
        if selector == contract.GET:
            return self._storage_at([REGISTER, "0x" + arguments[:64], hex(height)])
        if selector == contract.ENV:
            timestamp = int(str(self._blocks[height]["timestamp"]), 16)
            mix = int(str(self._blocks[height]["mixHash"]), 16)
            return "0x" + "".join(map(contract.word, (height, timestamp, 0, mix, GAS_LIMIT, BASE_FEE, self._chain_id)))
        if selector == contract.FAIL:
            raise RpcFault(3, f"execution reverted: {contract.FAIL_TEXT}", contract.revert_data())
        if selector == contract.BOOM:
            raise RpcFault(-32000, "invalid opcode: INVALID")
        raise RpcFault(3, "execution reverted", "0x")

    def _estimate(self, params: Sequence[Json]) -> Json:
        self._call(params)
        request = params[0]
        assert isinstance(request, dict)
        data = bytes.fromhex(str(request.get("data") or request.get("input") or "0x")[2:])
        intrinsic = 21_000 + sum(16 if byte else 4 for byte in data)
        return hex(intrinsic + (24_000 if data.hex().startswith(contract.SET) else 0))

    def _fee_history(self, params: Sequence[Json]) -> Json:
        newest = self._state_height(params, 1)
        count = min(int(str(params[0]), 16), newest + 1)
        used = [int(str(b["gasUsed"]), 16) for b in self._blocks[newest - count + 1 : newest + 1]]
        answer: dict[str, Json] = {
            "oldestBlock": hex(newest - count + 1),
            "baseFeePerGas": [hex(BASE_FEE)] * (count + 1),
            "gasUsedRatio": [gas / GAS_LIMIT for gas in used],
        }
        if len(params) > 2 and params[2]:
            answer["reward"] = [[hex(TIP)] * len(_list(params[2])) for _ in range(count)]
        return answer

    def _trace(self, params: Sequence[Json]) -> Json:
        transaction = self._transactions.get(str(params[0]))
        if transaction is None:
            raise RpcFault(-32000, "transaction not found")
        options = params[1] if len(params) > 1 else None
        if not isinstance(options, dict) or options.get("tracer") != "callTracer":
            raise RpcFault(-32602, "the simulated chain has the callTracer only")
        receipt = self._receipt_by_hash[str(params[0])]
        trace: dict[str, Json] = {
            "type": "CALL" if transaction["to"] else "CREATE",
            "from": transaction["from"],
            "to": transaction["to"] or receipt["contractAddress"],
            "value": transaction["value"],
            "gas": transaction["gas"],
            "gasUsed": receipt["gasUsed"],
            "input": transaction["input"],
        }
        if receipt["status"] == "0x0":
            trace |= {"error": "execution reverted", "output": contract.revert_data()}
        return trace


def _list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


def _dicts(value: Json) -> list[dict[str, Json]]:
    assert isinstance(value, list)
    return value


def _log_fits(log: Mapping[str, Json], wanted: Mapping[str, Json]) -> bool:
    """Return whether the log passes a filter's `address` and `topics`."""
    addresses = wanted.get("address") or []
    addresses = [addresses] if isinstance(addresses, str) else _list(addresses)
    if addresses and log["address"] not in [str(a).lower() for a in addresses]:
        return False
    topics = _list(log["topics"])
    for position, topic in enumerate(_list(wanted.get("topics") or [])):
        choices = _list(topic) if isinstance(topic, list) else [topic]
        if topic is not None and choices and (position >= len(topics) or topics[position] not in choices):
            return False
    return True


_HANDLERS: Final[Mapping[str, Callable[[Chain, Sequence[Json]], Json]]] = {
    "eth_chainId": lambda chain, params: hex(chain._chain_id),
    "net_version": lambda chain, params: str(chain._chain_id),
    "web3_clientVersion": lambda chain, params: f"gnomon-simulated-chain/{chain._name}",
    "eth_syncing": lambda chain, params: False,
    "eth_accounts": lambda chain, params: list(ACCOUNTS),
    "eth_gasPrice": lambda chain, params: hex(BASE_FEE + TIP),
    "eth_blockNumber": lambda chain, params: hex(chain.height),
    "eth_getBlockByNumber": Chain._block_by_number,
    "eth_getBlockByHash": Chain._block_by_hash,
    "eth_getBlockReceipts": Chain._block_receipts,
    "eth_getBlockTransactionCountByNumber": Chain._transaction_count_of_block,
    "eth_getTransactionByHash": lambda chain, params: chain._transactions.get(str(params[0])),
    "eth_getTransactionByBlockNumberAndIndex": Chain._transaction_at,
    "eth_getTransactionReceipt": lambda chain, params: chain._receipt_by_hash.get(str(params[0])),
    "eth_getLogs": Chain._logs,
    "eth_getBalance": Chain._balance,
    "eth_getCode": Chain._code,
    "eth_getTransactionCount": Chain._nonce,
    "eth_getStorageAt": Chain._storage_at,
    "eth_call": Chain._call,
    "eth_estimateGas": Chain._estimate,
    "eth_feeHistory": Chain._fee_history,
    "debug_traceTransaction": Chain._trace,
}
