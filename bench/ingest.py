"""
What an event costs the processors, from record to encoded block, beside merely decoding it.

    python -m bench ingest [--events N] [--rounds N]

Traffic: one request and one mirrored pair each, digests equal, every twentieth over a priced fallback, one in 200 with
a difference. No ClickHouse takes part: the sink's inserts end when their block is encoded. CPU time of one thread,
median of the rounds, garbage collection as `gnomon ingest` sets it.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw
from xxhash import xxh3_128_hexdigest

from gnomon.config.model import Settings
from gnomon.events import codec
from gnomon.events.contract import NO_BODY, Answer, Attempt, Head, Heads, PrimaryResponse, ShadowResponse
from ingest.batch import decode
from ingest.engine import Engine, Mark
from ingest.keeper import PIECE
from ingest.native import Column, block
from ingest.rows import joined, rows_of
from ingest.settings import context
from ingest.sink import Sink

AT = 1_790_000_000_000_000_000
PADDING = "a" * 600
HEADS = Heads(network=Head(latest=200, finalized=150), upstreams={"p1": Head(latest=200), "s1": Head(latest=200)})
MISSED = Attempt(upstream="p1", duration_us=900, outcome="empty", is_empty=True, status=200)
PAID = Attempt(upstream="f1", vendor="alchemy", tier="fallback", cause="empty_at_head", duration_us=1500, status=200)
SERVED = Attempt(upstream="p1", duration_us=1500, request_bytes=90, response_bytes=700, status=200)


def records(n: int) -> list[bytes]:
    """Return `n` records, a request and its pair in turn."""
    out = []
    for i in range(n // 2):
        number = 100 + i % 50
        params = Raw(b'["0x%x",false]' % number)
        body = b'{"number":"0x%x","gasUsed":"0x5208","pad":"%s"}' % (number, PADDING.encode())
        other = body.replace(b"0x5208", b"0x1") if i % 200 == 0 else body
        at = AT + i * 1_000_000
        answer = Answer(kind="result", digest=xxh3_128_hexdigest(body), n_bytes=len(body), body=Raw(body))
        travels = other is not body
        primary = PrimaryResponse(
            v=1, event_id=f"00000000000000aa:{2 * i}", at=at, network="evm:1", request_id=f"{i * 7919:032x}",
            project="main", method="eth_getBlockByNumber", params=params, rpc_id=Raw(b"%d" % i), request_bytes=80,
            response_bytes=700, duration_us=3000, upstream="p1", tier="primary", answer=answer, heads=HEADS,
            attempts=(MISSED, PAID) if i % 20 == 3 else (SERVED,), shadows={"s1": "mirrored"},
        )  # fmt: skip
        shadow = ShadowResponse(
            v=1, event_id=f"00000000000000aa:{2 * i + 1}", at=at + 2_000_000, network="evm:1",
            request_id=primary.request_id, project="main", method=primary.method, params=params, heads=HEADS,
            primary_upstream="p1", primary_duration_us=3000, shadow_upstream="s1", primary_heads=HEADS,
            primary=answer if travels else Answer(kind="result", digest=answer.digest, n_bytes=len(body)),
            shadow=Answer(
                kind="result",
                digest=xxh3_128_hexdigest(other),
                n_bytes=len(other),
                body=Raw(other) if travels else NO_BODY,
            ),
            attempt=Attempt(upstream="s1", tier="shadow", kind="shadow", duration_us=2000, status=200),
        )  # fmt: skip
        out += [codec.encode(primary), codec.encode(shadow)]
    return out


class Nowhere(Engine):
    """Encodes each block and sends it nowhere."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1", fence="front")
        self.n_bytes = 0
        self.n_rows = 0

    def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[list[str]]:
        return [["0"]] if "max(epoch)" in sql or "max(next)" in sql else []

    def insert(
        self, table: str, columns: Sequence[Column], values: Sequence[Sequence[Any]], mark: Mark, database: str = ""
    ) -> None:
        self.n_bytes += len(block(columns, values))
        self.n_rows += len(values[0])


def main() -> None:
    """Print one line per part and the sum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=20_000, help="a batch (default 20000)")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    data = records(args.events)
    steps = context(Settings())
    gc.freeze()
    gc.set_threshold(200_000, 10, 100)
    taken: dict[str, list[float]] = {"bare decode": [], "decode, check": [], "rows": [], "group, encode": []}
    engine = Nowhere()
    for _ in range(args.rounds):
        marks = [time.thread_time()]
        for record in data:
            codec.decode(record)
        marks.append(time.thread_time())
        sums = dict.fromkeys(taken, 0.0)
        sums["bare decode"] = marks[1] - marks[0]
        made = []
        for start in range(0, len(data), PIECE):
            marks = [time.thread_time()]
            batch = decode(start, data[start : start + PIECE])
            marks.append(time.thread_time())
            made.append(rows_of(batch, steps, 0))
            marks.append(time.thread_time())
            sums["decode, check"] += marks[1] - marks[0]
            sums["rows"] += marks[2] - marks[1]
        engine = Nowhere()
        sink = Sink(engine, "0" * 32, "log", 0)
        sink.take_over()
        marks = [time.thread_time()]
        sink.store(joined(made).rows)
        sums["group, encode"] = time.thread_time() - marks[0]
        for name, seconds in sums.items():
            taken[name].append(seconds / len(data) * 1e6)
    us = {name: statistics.median(values) for name, values in taken.items()}
    whole = sum(us.values()) - us["bare decode"]
    print(f"{len(data)} events of {sum(map(len, data)) / len(data):.0f} B, {engine.n_rows / len(data):.2f} rows each")
    for name, value in us.items():
        print(f"  {name:<14} {value:>7.2f} us/event")
    print(f"  {'whole':<14} {whole:>7.2f} us/event, {whole / us['bare decode']:.1f} times the bare decode,", end=" ")
    print(f"{1e6 / whole:,.0f} events/s a core, {engine.n_bytes / len(data):.0f} B/event to ClickHouse")


if __name__ == "__main__":
    main()
