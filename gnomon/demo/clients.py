"""
The client of the demonstration: web3.py where it is installed, else a plain one over `http.client`.

Both ask the same questions. Every method returns the decoded result, or None for a block, transaction or receipt that
is not there, and raises `CallFailed` for an error answer. Both block, so they run in threads, one client a thread.
"""

import contextlib
import http.client
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 15.0


class CallFailed(Exception):
    """The answer was an error (a revert, for example), or there was none."""


class Client(Protocol):
    """What the traffic needs of a client."""

    name: str

    def block(self, reference: int | str, full: bool) -> dict[str, Any] | None: ...
    def block_receipts(self, number: int) -> Sequence[Any] | None: ...
    def transaction(self, tx_hash: str) -> dict[str, Any] | None: ...
    def receipt(self, tx_hash: str) -> dict[str, Any] | None: ...
    def logs(self, query: dict[str, Any]) -> Sequence[Any]: ...
    def balance(self, address: str, reference: int | str) -> int: ...
    def nonce(self, address: str, reference: int | str) -> int: ...
    def code(self, address: str, reference: int | str) -> bytes: ...
    def storage(self, address: str, slot: int, reference: int | str) -> bytes: ...
    def call(self, transaction: dict[str, Any], reference: int | str) -> bytes: ...
    def estimate(self, transaction: dict[str, Any]) -> int: ...
    def fee_history(self, count: int, newest: int) -> dict[str, Any]: ...
    def batch(self, numbers: Sequence[int]) -> int:
        """Ask for blocks in one batch; return how many came."""

    def close(self) -> None: ...


def open_client(url: str) -> Client:
    """Return the best client that is installed."""
    try:
        return Web3Client(url)
    except ImportError:
        return PlainClient(url)


@contextlib.contextmanager
def kept_recursion_limit() -> Iterator[None]:
    """
    Undo what an import within does to the recursion limit.

    py_ecc, which web3.py needs, raises it to where a deeply nested JSON text overflows the C stack instead of raising.
    """
    limit = sys.getrecursionlimit()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def preload() -> str:
    """Import the client's library, which takes a second or two; return the client's name."""
    client = open_client("http://127.0.0.1:1")
    client.close()
    return client.name


class Web3Client:
    """web3.py over requests."""

    def __init__(self, url: str) -> None:
        from importlib.metadata import version

        with kept_recursion_limit():
            from web3 import HTTPProvider, Web3
            from web3.exceptions import BlockNotFound, TransactionNotFound, Web3Exception

        self.name = f"web3.py {version('web3')}"
        self._not_found = (BlockNotFound, TransactionNotFound)
        self._failures = (Web3Exception, ValueError, OSError)
        self._web3 = Web3(
            HTTPProvider(url, request_kwargs={"timeout": TIMEOUT_SECONDS}, exception_retry_configuration=None)
        )

    def _ask(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except self._not_found:
            return None
        except self._failures as exc:
            raise CallFailed(str(exc)) from exc

    def _address(self, address: str) -> Any:
        return self._web3.to_checksum_address(address)

    def block(self, reference: int | str, full: bool) -> dict[str, Any] | None:
        result: dict[str, Any] | None = self._ask(lambda: self._web3.eth.get_block(_id(reference), full))
        return result

    def block_receipts(self, number: int) -> Sequence[Any] | None:
        result: Sequence[Any] | None = self._ask(lambda: self._web3.eth.get_block_receipts(_id(number)))
        return result

    def transaction(self, tx_hash: str) -> dict[str, Any] | None:
        result: dict[str, Any] | None = self._ask(lambda: self._web3.eth.get_transaction(_id(tx_hash)))
        return result

    def receipt(self, tx_hash: str) -> dict[str, Any] | None:
        result: dict[str, Any] | None = self._ask(lambda: self._web3.eth.get_transaction_receipt(_id(tx_hash)))
        return result

    def logs(self, query: dict[str, Any]) -> Sequence[Any]:
        wanted: Any = {**query, **({"address": self._address(query["address"])} if "address" in query else {})}
        result: Sequence[Any] = self._ask(lambda: self._web3.eth.get_logs(wanted))
        return result

    def balance(self, address: str, reference: int | str) -> int:
        return int(self._ask(lambda: self._web3.eth.get_balance(self._address(address), _id(reference))))

    def nonce(self, address: str, reference: int | str) -> int:
        return int(self._ask(lambda: self._web3.eth.get_transaction_count(self._address(address), _id(reference))))

    def code(self, address: str, reference: int | str) -> bytes:
        return bytes(self._ask(lambda: self._web3.eth.get_code(self._address(address), _id(reference))))

    def storage(self, address: str, slot: int, reference: int | str) -> bytes:
        return bytes(self._ask(lambda: self._web3.eth.get_storage_at(self._address(address), slot, _id(reference))))

    def call(self, transaction: dict[str, Any], reference: int | str) -> bytes:
        wanted: Any = {**transaction, "to": self._address(transaction["to"])}
        return bytes(self._ask(lambda: self._web3.eth.call(wanted, _id(reference))))

    def estimate(self, transaction: dict[str, Any]) -> int:
        wanted: Any = {
            key: self._address(value) if key in ("to", "from") else value for key, value in transaction.items()
        }
        return int(self._ask(lambda: self._web3.eth.estimate_gas(wanted)))

    def fee_history(self, count: int, newest: int) -> dict[str, Any]:
        result: dict[str, Any] = self._ask(lambda: self._web3.eth.fee_history(count, _id(newest), [10, 90]))
        return result

    def batch(self, numbers: Sequence[int]) -> int:
        def ask() -> int:
            with self._web3.batch_requests() as batch:
                for number in numbers:
                    batch.add(self._web3.eth.get_block(_id(number)))
                return sum(block is not None for block in batch.execute())

        return int(self._ask(ask) or 0)

    def close(self) -> None:
        """Nothing to do: the provider keeps its sessions to the end of the process."""


def _id(reference: Any) -> Any:
    """Return a block number, tag or hash as web3.py's narrower types, which are the same values at run time."""
    return reference


class PlainClient:
    """JSON-RPC over one kept-alive connection."""

    name = "plain client"

    def __init__(self, url: str, secret: str = "") -> None:
        parts = urlsplit(url)
        self._path = parts.path or "/"
        self._headers = {"content-type": "application/json", **({"x-gnomon-secret": secret} if secret else {})}
        self._connection = http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_SECONDS)
        self._id = 0

    def _message(self, method: str, params: Sequence[Any]) -> dict[str, Any]:
        self._id += 1
        return {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}

    def _post(self, body: Any) -> Any:
        try:
            self._connection.request("POST", self._path, json.dumps(body), self._headers)
            return json.loads(self._connection.getresponse().read())
        except (http.client.HTTPException, OSError, ValueError) as exc:
            self._connection.close()
            raise CallFailed(f"{type(exc).__name__}: {exc}") from exc

    def _rpc(self, method: str, *params: Any) -> Any:
        answer = self._post(self._message(method, params))
        if not isinstance(answer, dict) or "result" not in answer:
            raise CallFailed(str(answer))
        return answer["result"]

    def height(self) -> int:
        """Return the newest block's number."""
        return int(self._rpc("eth_blockNumber"), 16)

    def block(self, reference: int | str, full: bool) -> dict[str, Any] | None:
        result: dict[str, Any] | None = self._rpc("eth_getBlockByNumber", _hex(reference), full)
        return result

    def block_receipts(self, number: int) -> Sequence[Any] | None:
        result: Sequence[Any] | None = self._rpc("eth_getBlockReceipts", hex(number))
        return result

    def transaction(self, tx_hash: str) -> dict[str, Any] | None:
        result: dict[str, Any] | None = self._rpc("eth_getTransactionByHash", tx_hash)
        return result

    def receipt(self, tx_hash: str) -> dict[str, Any] | None:
        result: dict[str, Any] | None = self._rpc("eth_getTransactionReceipt", tx_hash)
        return result

    def logs(self, query: dict[str, Any]) -> Sequence[Any]:
        wanted = {key: hex(value) if isinstance(value, int) else value for key, value in query.items()}
        result: Sequence[Any] = self._rpc("eth_getLogs", wanted)
        return result

    def balance(self, address: str, reference: int | str) -> int:
        return int(self._rpc("eth_getBalance", address, _hex(reference)), 16)

    def nonce(self, address: str, reference: int | str) -> int:
        return int(self._rpc("eth_getTransactionCount", address, _hex(reference)), 16)

    def code(self, address: str, reference: int | str) -> bytes:
        return _bytes(self._rpc("eth_getCode", address, _hex(reference)))

    def storage(self, address: str, slot: int, reference: int | str) -> bytes:
        return _bytes(self._rpc("eth_getStorageAt", address, hex(slot), _hex(reference)))

    def call(self, transaction: dict[str, Any], reference: int | str) -> bytes:
        return _bytes(self._rpc("eth_call", transaction, _hex(reference)))

    def estimate(self, transaction: dict[str, Any]) -> int:
        return int(self._rpc("eth_estimateGas", transaction), 16)

    def fee_history(self, count: int, newest: int) -> dict[str, Any]:
        result: dict[str, Any] = self._rpc("eth_feeHistory", hex(count), hex(newest), [10, 90])
        return result

    def batch(self, numbers: Sequence[int]) -> int:
        answers = self._post([self._message("eth_getBlockByNumber", [hex(number), False]) for number in numbers])
        if not isinstance(answers, list):
            raise CallFailed(str(answers))
        return sum(answer.get("result") is not None for answer in answers)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _hex(reference: int | str) -> str:
    return hex(reference) if isinstance(reference, int) else reference


def _bytes(text: str) -> bytes:
    digits = text.removeprefix("0x")
    return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
