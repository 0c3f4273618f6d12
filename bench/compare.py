"""
What a verdict costs, beside decoding the same two texts and beside DeepDiff, in the same run.

    python -m bench compare

CPU time of one thread, least of some rounds taken by turns. Pairs are lists of logs: the same bytes, the same members
in another order, two differences; and 200 receipts of an OP-stack block under nine masks.
"""

import json
import random
import time
from collections.abc import Callable
from typing import Any

import msgspec
from deepdiff import DeepDiff

from gnomon.compare import masks
from gnomon.compare.judge import Answer, Policy, Question, judge

SIZES = (1_000, 10_000, 200_000)
N_ROUNDS = 7
ROUND_SECONDS = 0.03
L1_MEMBERS = ("l1BaseFeeScalar", "l1BlobBaseFee", "l1BlobBaseFeeScalar", "l1BlockNumber", "l1Fee", "l1GasPrice",
              "l1GasUsed", "blockTimestamp")  # fmt: skip
MASKS = [*(f"*.{name}" for name in L1_MEMBERS), "*.logs.*.blockTimestamp"]
LATEST, FINAL = 20_000_256, 20_000_192
LOG_PARAMS = b'[{"fromBlock":"0x1312d00","toBlock":"0x1312d00"}]'
LOGS = Question(method="eth_getLogs", params=LOG_PARAMS, latest=LATEST, finalized=FINAL)
RECEIPTS = Question(method="eth_getBlockReceipts", params=b'["0x1312d00"]', latest=LATEST, finalized=FINAL)


def log(index: int) -> dict[str, Any]:
    """Return a log of a token transfer."""
    return {
        "address": f"0x{index:040x}",
        "topics": [f"0x{index * 7:064x}", f"0x{index * 11:064x}"],
        "data": f"0x{index:0128x}",
        "blockNumber": "0x1312d00",
        "transactionHash": f"0x{index // 2:064x}",
        "transactionIndex": hex(index // 2),
        "blockHash": "0x" + "ab" * 32,
        "logIndex": hex(index),
        "removed": False,
    }


def receipt(index: int) -> dict[str, Any]:
    """Return a receipt of an OP-stack block."""
    return {
        "blockHash": "0x" + "ab" * 32,
        "blockNumber": "0x1312d00",
        "contractAddress": None,
        "cumulativeGasUsed": hex(21_000 * index),
        "effectiveGasPrice": "0x3b9aca00",
        "from": f"0x{index:040x}",
        "gasUsed": "0x5208",
        "logs": [log(index)],
        "logsBloom": "0x" + "0" * 512,
        "status": "0x1",
        "to": f"0x{index + 1:040x}",
        "transactionHash": f"0x{index:064x}",
        "transactionIndex": hex(index),
        "type": "0x2",
    } | dict.fromkeys(L1_MEMBERS, "0x1")


def text_of(value: object) -> bytes:
    """Return JSON text without white space."""
    return json.dumps(value, separators=(",", ":")).encode()


def logs_of(n_bytes: int) -> list[dict[str, Any]]:
    """Return logs whose text is about `n_bytes` long."""
    return [log(index) for index in range(max(1, round(n_bytes / len(text_of(log(100))))))]


def reordered(value: Any, rng: random.Random) -> Any:
    """Return the same value, the members of its objects in another order."""
    if isinstance(value, dict):
        names = list(value)
        rng.shuffle(names)
        return {name: reordered(value[name], rng) for name in names}
    return [reordered(element, rng) for element in value] if isinstance(value, list) else value


def microseconds(*calls: Callable[[], object]) -> list[float]:
    """Return CPU time of each call, measured by turns, so that a busy machine slows all of them alike."""
    counts, best = [1] * len(calls), [float("inf")] * len(calls)
    for _ in range(N_ROUNDS):
        for index, call in enumerate(calls):
            while True:
                start = time.thread_time()
                for _ in range(counts[index]):
                    call()
                taken = time.thread_time() - start
                if taken >= ROUND_SECONDS:
                    break
                counts[index] *= 2
            best[index] = min(best[index], taken / counts[index])
    return [seconds * 1e6 for seconds in best]


def judging(
    question: Question, a: bytes, b: bytes, expected: str, policy: Policy | None = None
) -> Callable[[], object]:
    """Return a call that gives one verdict, which must be the expected one."""
    primary, shadow = Answer(kind="result", fragment=a), Answer(kind="result", fragment=b)
    policy = policy or Policy()
    found = judge(question, primary, shadow, policy).outcome
    if found != expected:
        raise SystemExit(f"the verdict is {found}, not {expected}: the figures would mean nothing")
    return lambda: judge(question, primary, shadow, policy)


def main() -> None:
    """Print one line for each size, and one for the masked receipts."""
    decode = msgspec.json.decode
    for size in SIZES:
        value = logs_of(size)
        other = json.loads(text_of(value))
        other[len(other) // 2]["data"] = "0x1234"
        del other[-1]["removed"]
        a, b, c = text_of(value), text_of(reordered(value, random.Random(1))), text_of(other)
        copy = bytes(bytearray(a))
        x, y = decode(a), decode(c)
        equal, decodes, moved, differs, deep = microseconds(
            judging(LOGS, a, copy, "identical"),
            lambda a=a, b=b: (decode(a), decode(b)),  # type: ignore[misc]
            judging(LOGS, a, b, "identical"),
            judging(LOGS, a, c, "mismatch"),
            lambda x=x, y=y: DeepDiff(x, y),  # type: ignore[misc]
        )
        print(
            f"{len(a):>7} B  byte-equal {equal:6.1f} us"
            f"   reordered {moved:7.1f} us ({moved / decodes:.2f} of two decodes)"
            f"   mismatch {differs:8.1f} us (DeepDiff {deep:.0f} us, {deep / differs:.0f} times)"
        )
    receipts = [receipt(index) for index in range(200)]
    bare = [{name: member for name, member in one.items() if name not in L1_MEMBERS} for one in receipts]
    a, c = text_of(receipts), text_of(bare)
    policy = Policy(masks=masks.compile(MASKS))
    masked, decodes = microseconds(judging(RECEIPTS, a, c, "identical_masked", policy), lambda: (decode(a), decode(c)))
    print(f"{len(a):>7} B  200 receipts, 9 masks {masked:8.1f} us ({masked / decodes:.2f} of two decodes)")


if __name__ == "__main__":
    main()
