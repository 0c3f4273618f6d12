"""
A night as the dashboard shows it: made up, but consistent, and stored by the product's own steps.

At `now` minus 35 min a primary of Base times out, its breaker opens, the other one falls behind, and a paid fallback
serves. A shadow of Ethereum has answered with another logIndex since 65 h; another one words its errors differently; a
paid one once gave no logs where there are some. Everything is a function of the seed.
"""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from msgspec import Raw, structs
from xxhash import xxh3_128_hexdigest

from gnomon.config.load import loads
from gnomon.config.model import Settings
from gnomon.events import codec
from gnomon.events.contract import (
    NO_BODY,
    Answer,
    AnyEvent,
    Attempt,
    BreakerTransition,
    Cause,
    Decision,
    Head,
    Heads,
    HeadUpdate,
    InternalAttempt,
    PrimaryResponse,
    Reorg,
    ShadowResponse,
)
from ingest.batch import decode
from ingest.engine import Engine
from ingest.rows import rows_of
from ingest.settings import context
from ingest.sink import Sink
from tests.ingest.engine_process import EngineProcess

CONFIG = """
projects:
  - id: main
    upstreams:
      - id: geth-1
        endpoint: 'http://127.0.0.1:1'
        evm: {chainId: 1}
      - id: geth-2
        endpoint: 'http://127.0.0.1:1'
        evm: {chainId: 1}
      - id: infura-eth
        endpoint: 'http://127.0.0.1:1'
        evm: {chainId: 1}
        tags: ['tier:fallback']
        vendor: infura
        account: infura
      - id: node-b
        endpoint: 'http://127.0.0.1:1'
        evm: {chainId: 1}
        shadow: {enabled: true}
      - id: node-c
        endpoint: 'http://127.0.0.1:1'
        evm: {chainId: 1}
        shadow: {enabled: true, tolerate: [null_vs_absent]}
      - id: chainstack-eth
        endpoint: 'http://127.0.0.1:1'
        evm: {chainId: 1}
        vendor: chainstack
        account: chainstack
        shadow: {enabled: true, sampleRate: 0.2}
        ignoreMethods: [debug_traceTransaction]
      - id: control
        endpoint: 'http://127.0.0.1:1'
        evm: {chainId: 1}
        shadow: {enabled: true, sampleRate: 0.2, control: true}
      - id: op-1
        endpoint: 'http://127.0.0.1:1'
        evm: {chainId: 8453}
      - id: op-2
        endpoint: 'http://127.0.0.1:1'
        evm: {chainId: 8453}
      - id: alchemy-base
        endpoint: 'http://127.0.0.1:1'
        evm: {chainId: 8453}
        tags: ['tier:fallback']
        vendor: alchemy
        account: alchemy
      - id: node-b-base
        endpoint: 'http://127.0.0.1:1'
        evm: {chainId: 8453}
        shadow: {enabled: true}
gnomon:
  clickhouse: {url: '%s'}
  pricing:
    accounts:
      alchemy: {monthlyBudgetUsd: 0.5}
      chainstack: {monthlyBudgetUsd: 0.1}
"""
ETH, BASE = "evm:1", "evm:8453"
ETH_HEAD, BASE_HEAD = 26_437_118, 54_090_342
UPSTREAMS = {
    ETH: ("geth-1", "geth-2", "infura-eth", "node-b", "node-c", "chainstack-eth"),
    BASE: ("op-1", "op-2", "alchemy-base", "node-b-base"),
}
BLOCK_SECONDS = {ETH: 12, BASE: 2}
BREAK_MINUTES, LAG_MINUTES = 35, 19
NEW_VERSION_HOURS = 65
METHODS = {
    "eth_call": 40, "eth_getTransactionReceipt": 16, "eth_getLogs": 14, "eth_getBlockByNumber": 12,
    "eth_getTransactionByHash": 8, "eth_getBlockReceipts": 8, "debug_traceTransaction": 2,
}  # fmt: skip
METHODS_THAT_NAME = {"eth_getTransactionReceipt": True, "eth_getTransactionByHash": True}
"""Whose finality depends on the block in the answer."""
ADDRESS = "0x3a7829fc00112233445566778899aabbccd74d46"
RULES: tuple[tuple[str, str, float, float, str], ...] = (
    ("BreakerFlapping", "evm:8453/op-1", 4, 3, "ticket"),
    ("FallbackSpend", "alchemy", 0.05, 0.02, "page"),
    ("HeadLag", "evm:8453/op-2", 13, 5, "ticket"),
)


def settings(url: str = "http://127.0.0.1:8123") -> Settings:
    """Return the configuration of the night."""
    return loads(CONFIG.strip() % url, environment={})


def ns(at: datetime) -> int:
    return int(at.timestamp() * 1000) * 1_000_000


class Night:
    """Events of a week that ends at `now`."""

    def __init__(self, now: datetime, *, dense_seconds: int = 6, sparse_seconds: int = 300, seed: int = 11) -> None:
        """
        Args:
            now: aware; rounded to the second.
            dense_seconds: between two requests of a network in the last three hours.
            sparse_seconds: the same before that.
        """
        self.now = now.replace(microsecond=0)
        self._dense = dense_seconds
        self._sparse = sparse_seconds
        self._random = random.Random(seed)
        self._n = 0

    # --- events ------------------------------------------------------------------------------------------------------

    def events(self) -> Iterator[AnyEvent]:
        """Yield the events in the order of their time."""
        found = [*self._requests(), *self._heads(), *self._breakers(), *self._polls()]
        found.sort(key=lambda event: event.at)
        for number, event in enumerate(found, 1):
            yield structs.replace(event, event_id=f"00000000000000aa:{number}")

    def _id(self) -> str:
        self._n += 1
        return f"00000000000000aa:{self._n}"

    def _times(self) -> Iterator[datetime]:
        at = self.now - timedelta(days=7)
        while at < self.now - timedelta(seconds=2):
            yield at
            is_dense = at >= self.now - timedelta(hours=3)
            step = self._dense if is_dense else self._sparse
            at += timedelta(seconds=step * self._random.uniform(0.6, 1.4))

    def minutes_ago(self, at: datetime) -> float:
        return (self.now - at).total_seconds() / 60

    def head_of(self, network: str, at: datetime) -> int:
        top = ETH_HEAD if network == ETH else BASE_HEAD
        return top - int((self.now - at).total_seconds() // BLOCK_SECONDS[network])

    def lag_of(self, upstream: str, at: datetime) -> int:
        ago = self.minutes_ago(at)
        if upstream == "op-2" and ago <= LAG_MINUTES:
            return min(13, 2 + int((LAG_MINUTES - ago) * 1.6))
        return {"node-c": 2, "infura-eth": 1}.get(upstream, 0)

    def _requests(self) -> Iterator[AnyEvent]:
        for network in (ETH, BASE):
            for at in self._times():
                yield from self._request(network, at)

    def _request(self, network: str, at: datetime) -> Iterator[AnyEvent]:
        pick = self._random
        method = pick.choices(list(METHODS), list(METHODS.values()))[0]
        if network == BASE and method == "debug_traceTransaction":
            method = "eth_call"
        head = self.head_of(network, at)
        is_final = pick.random() < 0.8
        block = head - (pick.randint(1000, 5000) if is_final else pick.randint(0, 3))
        body, params = answer_to(method, block, pick)
        named = block if METHODS_THAT_NAME.get(method) else None
        request_id = f"{pick.getrandbits(64):016x}"
        attempts, cause = self._attempts(network, at, method)
        served = attempts[-1]
        heads = Heads(
            network=Head(latest=head, finalized=head - 900),
            upstreams={a.upstream: Head(latest=head - self.lag_of(a.upstream, at)) for a in attempts},
        )
        shadows = self._shadows(network, method)
        is_error = served.outcome != "result"
        yield PrimaryResponse(
            v=1, event_id=self._id(), at=ns(at), network=network, request_id=request_id, project="main",
            user=pick.choice(("wallet-api", "indexer", "indexer")), agent="viem/2.0", method=method, params=Raw(params),
            rpc_id=Raw(str(pick.randint(1, 9999)).encode()), request_bytes=90 + len(params),
            response_bytes=len(body) + 40,
            duration_us=served.start_us + served.duration_us + 300, outcome="error" if is_error else "result",
            error_class=served.error_class if is_error else "", upstream=served.upstream, tier=served.tier, cause=cause,
            answer=answer(body, block=named) if not is_error else Answer(), attempts=attempts, heads=heads,
            escaped=served.tier == "fallback", beyond_head=cause == "beyond_head",
            n_skipped_open=int(cause == "breaker_open"),
            shadows=shadows if not is_error else {},
        )  # fmt: skip
        if is_error:
            return
        for upstream, decision in shadows.items():
            if decision == "mirrored":
                yield self._shadow(network, at, method, request_id, upstream, served, body, params, head, named)

    def _attempts(self, network: str, at: datetime, method: str) -> tuple[tuple[Attempt, ...], Cause]:
        pick, ago = self._random, self.minutes_ago(at)
        took = int(pick.lognormvariate(9.4, 0.5))

        def call(upstream: str, **members: object) -> Attempt:
            return Attempt(
                **{
                    "upstream": upstream,
                    "duration_us": took,
                    "request_bytes": 120,
                    "response_bytes": 900,
                    "status": 200,
                    **members,
                }  # type: ignore[arg-type]
            )

        if network == ETH:
            primary = pick.choice(("geth-1", "geth-2"))
            if pick.random() < 0.01:
                paid = call(
                    "infura-eth",
                    vendor="infura",
                    account="infura",
                    tier="fallback",
                    kind="hedge",
                    cause="hedge",
                    start_us=400_000,
                )
                return (call(primary, outcome="cancelled", is_cancelled=True, duration_us=430_000), paid), "hedge"
            return (call(primary),), ""
        paid_members = {"vendor": "alchemy", "account": "alchemy", "tier": "fallback"}
        if ago > BREAK_MINUTES:
            if pick.random() < 0.008:
                missed = call("op-2", outcome="empty", is_empty=True)
                paid = call(
                    "alchemy-base", cause="beyond_head", start_us=took, outcome="empty", is_empty=True, **paid_members
                )
                if method == "eth_getBlockByNumber":
                    return (missed, paid), "beyond_head"
            return (call(pick.choice(("op-1", "op-2"))),), ""
        if ago > BREAK_MINUTES - 2:
            timed_out = call("op-1", outcome="timeout", error_class="timeout", duration_us=2_000_000, status=0)
            if pick.random() < 0.3:
                return (call("op-1", outcome="error", error_class="timeout", duration_us=2_000_000, status=0),), ""
            return (timed_out, call("alchemy-base", cause="timeout", start_us=2_000_000, **paid_members)), "timeout"
        if ago <= LAG_MINUTES and method == "eth_getBlockByNumber":
            missed = call("op-2", outcome="empty", is_empty=True)
            return (missed, call("alchemy-base", cause="empty_at_head", start_us=took, **paid_members)), "empty_at_head"
        if pick.random() < 0.5:
            return (call("alchemy-base", cause="breaker_open", **paid_members),), "breaker_open"
        return (call("op-2"),), ""

    def _shadows(self, network: str, method: str) -> dict[str, Decision]:
        if network == BASE:
            return {"node-b-base": "mirrored"}
        sampled: Decision = "mirrored" if self._random.random() < 0.2 else "sampled_out"
        return {
            "node-b": "mirrored",
            "node-c": "mirrored",
            "chainstack-eth": "method_excluded" if method == "debug_traceTransaction" else sampled,
            "control": "mirrored" if self._random.random() < 0.2 else "sampled_out",
        }

    def _shadow(
        self, network: str, at: datetime, method: str, request_id: str, upstream: str, served: Attempt, body: bytes,
        params: bytes, head: int, named: int | None,
    ) -> ShadowResponse:  # fmt: skip
        other = self._other(at, method, upstream, body)
        took = int(self._random.lognormvariate(9.2, 0.4))
        is_late = self._random.random() < 0.0006
        vendor = "chainstack" if upstream == "chainstack-eth" else ""
        attempt = Attempt(
            upstream=upstream, tier="shadow", kind="shadow", duration_us=took, request_bytes=120, response_bytes=900,
            status=0 if is_late else 200, outcome="timeout" if is_late else "result",
            error_class="timeout" if is_late else "",
            vendor=vendor, account=vendor,
        )  # fmt: skip
        heads = Heads(
            network=Head(latest=head, finalized=head - 900),
            upstreams={served.upstream: Head(latest=head), upstream: Head(latest=head - self.lag_of(upstream, at))},
        )
        shadow = Answer() if is_late else answer(other, travels=other != body, block=named)
        return ShadowResponse(
            v=1, event_id=self._id(), at=ns(at + timedelta(milliseconds=60)), network=network, request_id=request_id,
            project="main", user="indexer", method=method, params=Raw(params),
            primary_upstream=served.upstream, primary_duration_us=served.start_us + served.duration_us,
            primary=answer(body, travels=other != body, block=named), shadow_upstream=upstream,
            shadow=shadow, attempt=attempt, heads=heads, primary_heads=heads, is_control=upstream == "control",
            tolerate=("null_vs_absent",) if upstream == "node-c" else (),
        )  # fmt: skip

    def _other(self, at: datetime, method: str, upstream: str, body: bytes) -> bytes:
        value = json.loads(body)
        pick = self._random
        if upstream in ("node-b", "node-b-base") and method == "eth_getBlockReceipts" and pick.random() < 0.5:
            for receipt in value:
                for log in receipt["logs"]:
                    log["blockTimestamp"] = "0x6afcd2f3"
        is_new = (self.now - at) < timedelta(hours=NEW_VERSION_HOURS)
        if upstream == "node-b" and is_new and method == "eth_getBlockReceipts" and pick.random() < 0.4:
            for place, log in enumerate(value[-1]["logs"]):
                log["logIndex"] = hex(place)
        if upstream == "node-b" and is_new and method == "eth_getTransactionReceipt" and pick.random() < 0.03:
            value["logs"][0]["logIndex"] = "0x0"
        if upstream == "node-c" and method == "eth_getTransactionReceipt" and pick.random() < 0.4:
            value.pop("contractAddress")
        if upstream == "node-c" and method == "debug_traceTransaction" and pick.random() < 0.3:
            value["calls"][0].pop("error")
        if (
            upstream == "chainstack-eth"
            and method == "eth_getLogs"
            and self.minutes_ago(at) < 1700
            and pick.random() < 0.1
        ):
            value = []
        return json.dumps(value, separators=(",", ":")).encode()

    def _heads(self) -> Iterator[AnyEvent]:
        sources = {"infura-eth": "poll", "node-c": "poll", "chainstack-eth": "poll", "alchemy-base": "poll"}
        for network, names in UPSTREAMS.items():
            step = 24 if network == ETH else 10
            for upstream in names:
                at = self.now - timedelta(hours=3)
                while at <= self.now:
                    ago = self.minutes_ago(at)
                    if upstream == "op-1" and ago < BREAK_MINUTES - 4:
                        break
                    number = self.head_of(network, at) - self.lag_of(upstream, at)
                    late = timedelta(milliseconds=self._random.randint(50, 400) + (700 if upstream in sources else 0))
                    for axis, height in (("latest", number), ("finalized", number - 900)):
                        yield HeadUpdate(
                            v=1, event_id=self._id(), at=ns(at + late), network=network, upstream=upstream,
                            axis=axis, number=height, hash=block_hash(network, height),  # type: ignore[arg-type]
                            parent_hash=block_hash(network, height - 1),
                            source=sources.get(upstream, "subscription"),  # type: ignore[arg-type]
                        )  # fmt: skip
                    at += timedelta(seconds=step)
        for hours, upstream, depth in ((5.6, "geth-2", 1), (18.7, "geth-1", 1), (58, "geth-1", 2)):
            at = self.now - timedelta(hours=hours)
            number = self.head_of(ETH, at)
            yield Reorg(
                v=1, event_id=self._id(), at=ns(at), network=ETH, upstream=upstream, number=number, depth=depth,
                old_hash=block_hash(ETH, -number), new_hash=block_hash(ETH, number),
            )  # fmt: skip

    def _breakers(self) -> Iterator[AnyEvent]:
        changes: tuple[tuple[float, str, str, str, str, dict[str, int]], ...] = (
            (7.7 * 60, "op-2", "closed", "open", "status", {"status": 3}),
            (7.7 * 60 - 0.2, "op-2", "open", "half_open", "", {}),
            (7.7 * 60 - 0.3, "op-2", "half_open", "closed", "", {}),
            (BREAK_MINUTES, "op-1", "closed", "open", "timeout", {"timeout": 3}),
            (BREAK_MINUTES - 5, "op-1", "open", "half_open", "", {}),
            (BREAK_MINUTES - 5.1, "op-1", "half_open", "open", "timeout", {"timeout": 2}),
            (BREAK_MINUTES - 10, "op-1", "open", "half_open", "", {}),
            (BREAK_MINUTES - 10.1, "op-1", "half_open", "open", "timeout", {"timeout": 2}),
        )
        for minutes, upstream, before, after, reason, counters in changes:
            yield BreakerTransition(
                v=1, event_id=self._id(), at=ns(self.now - timedelta(minutes=minutes)), network=BASE, upstream=upstream,
                from_state=before, to_state=after, reason=reason, counters=counters,  # type: ignore[arg-type]
            )  # fmt: skip

    def _polls(self) -> Iterator[AnyEvent]:
        """Yield head polls: the paid one's of the whole week, everybody's of the last three hours."""
        paid = {"alchemy-base": "alchemy", "infura-eth": "infura", "chainstack-eth": "chainstack"}
        for network, names in UPSTREAMS.items():
            for upstream in names:
                vendor = paid.get(upstream, "")
                at = self.now - timedelta(days=7 if vendor == "alchemy" else 0, hours=3)
                while at < self.now:
                    is_away = upstream == "op-1" and self.minutes_ago(at) <= BREAK_MINUTES
                    tier = (
                        "primary"
                        if upstream[:3] in ("get", "op-")
                        else "fallback"
                        if upstream in ("alchemy-base", "infura-eth")
                        else "shadow"
                    )
                    yield InternalAttempt(
                        v=1, event_id=self._id(), at=ns(at), network=network, attempt_id=f"i{self._n}", project="main",
                        attempt=Attempt(
                            upstream=upstream, vendor=vendor, account=vendor, tier=tier, kind="head_poll",  # type: ignore[arg-type]
                            method="eth_blockNumber", duration_us=2_000_000 if is_away else 900, request_bytes=80,
                            response_bytes=0 if is_away else 60, status=0 if is_away else 200,
                            outcome="timeout" if is_away else "result", error_class="timeout" if is_away else "",
                        ),
                    )  # fmt: skip
                    at += timedelta(minutes=0.5 if self.minutes_ago(at) < 181 else 10)

    # --- storing -----------------------------------------------------------------------------------------------------

    def store(self, engine: Engine) -> int:
        """Store it all, as the engine of the product would; return how many events."""
        records = [codec.encode(event) for event in self.events()]
        sink = Sink(engine, "0" * 32, "log", 0)
        sink.take_over()
        made = context(settings())
        for first in range(0, len(records), 20_000):
            batch = decode(first, records[first : first + 20_000])
            sink.store(rows_of(batch, made, ns(self.now) // 10**6).rows)
            sink.progress(first + len(batch_of(records, first)))
        self._store_alerts(engine)
        return len(records)

    def _store_alerts(self, engine: Engine) -> None:
        since = {"BreakerFlapping": BREAK_MINUTES - 10, "FallbackSpend": 28, "HeadLag": 17}
        columns = "at, rule, state, subject, value, threshold, severity, since, delivered, fingerprint"
        rows = [
            (self.now - timedelta(minutes=since[rule]), rule, "firing", subject, value, limit, severity)
            for rule, subject, value, limit, severity in RULES
        ]
        past = self.now - timedelta(hours=28)
        rows += [(past, "EmptyVsData", "firing", "evm:1/chainstack-eth/eth_getLogs", 3, 0, "page")]
        rows += [
            (past + timedelta(hours=1), "EmptyVsData", "resolved", "evm:1/chainstack-eth/eth_getLogs", 0, 0, "page")
        ]
        for at, rule, state, subject, value, limit, severity in rows:
            stamp = f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
            engine.command(
                f"INSERT INTO gnomon_core.alerts ({columns}) VALUES ('{stamp}', '{rule}', '{state}', '{subject}',"
                f" {value}, {limit}, '{severity}', '{stamp}', true, '{rule}-{subject}')"
            )


def batch_of(records: list[bytes], first: int) -> list[bytes]:
    return records[first : first + 20_000]


def answer(body: bytes, *, travels: bool = True, block: int | None = None) -> Answer:
    """Return a result with its digest, and the block that it names."""
    text = Raw(body) if travels else NO_BODY
    return Answer(kind="result", digest=xxh3_128_hexdigest(body), n_bytes=len(body), body=text, response_block=block)


def block_hash(network: str, number: int) -> str:
    return "0x" + xxh3_128_hexdigest(f"{network}{number}".encode()) * 2


def answer_to(method: str, block: int, pick: random.Random) -> tuple[bytes, bytes]:
    """Return an answer, and the parameters of its question."""
    number = hex(block)
    tx = f"0x{pick.getrandbits(256):064x}"
    result: object
    params: object
    match method:
        case "eth_call":
            result, params = f"0x{pick.getrandbits(128):064x}", [{"to": ADDRESS, "data": "0x18160ddd"}, number]
        case "eth_getTransactionReceipt":
            result, params = receipt(tx, block, 0, 2), [tx]
        case "eth_getLogs":
            result = [log(tx, block, place) for place in range(3)]
            params = [{"fromBlock": number, "toBlock": number, "address": ADDRESS}]
        case "eth_getBlockByNumber":
            result, params = (
                {"number": number, "hash": block_hash(ETH, block), "gasUsed": hex(pick.getrandbits(24))},
                [number, False],
            )
        case "eth_getTransactionByHash":
            result, params = {"hash": tx, "blockNumber": number, "value": hex(pick.getrandbits(60))}, [tx]
        case "eth_getBlockReceipts":
            result, params = [receipt(tx, block, 3 * place, 3) for place in range(4)], [number]
        case _:
            result = {"gasUsed": hex(pick.getrandbits(20)), "calls": [{"type": "CALL", "error": "execution reverted"}]}
            params = [tx]
    return json.dumps(result, separators=(",", ":")).encode(), json.dumps(params, separators=(",", ":")).encode()


def log(tx: str, block: int, index: int) -> dict[str, object]:
    return {
        "address": ADDRESS, "blockHash": block_hash(ETH, block), "blockNumber": hex(block),
        "data": "0x" + "0" * 58 + "0f4240", "logIndex": hex(index), "removed": False, "topics": ["0x" + "d" * 64],
        "transactionHash": tx, "transactionIndex": "0x0",
    }  # fmt: skip


def receipt(tx: str, block: int, first_log: int, n_logs: int) -> dict[str, object]:
    return {
        "blockHash": block_hash(ETH, block), "blockNumber": hex(block), "contractAddress": None,
        "cumulativeGasUsed": "0x6a1f20", "effectiveGasPrice": "0x3b9aca00", "from": ADDRESS, "gasUsed": "0x5208",
        "logs": [log(tx, block, first_log + place) for place in range(n_logs)], "status": "0x1", "to": ADDRESS,
        "transactionHash": tx, "transactionIndex": "0x0", "type": "0x2",
    }  # fmt: skip


def filled(process: EngineProcess, now: datetime, **how: int) -> Night:
    """Fill a migrated engine with the night; return it."""
    night = Night(now, **how)
    night.store(process.connect())
    return night
