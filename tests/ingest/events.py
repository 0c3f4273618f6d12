"""Events for the tests of the processors: a small world in which everything that is stored is known beforehand."""

from msgspec import Raw
from xxhash import xxh3_128_hexdigest

from gnomon.events import codec
from gnomon.events.contract import (
    NO_BODY,
    VERSION,
    Answer,
    AnyEvent,
    Attempt,
    BreakerTransition,
    Head,
    Heads,
    HeadUpdate,
    InternalAttempt,
    PrimaryResponse,
    Reorg,
    ShadowResponse,
)

AT = 1_790_000_000_000_000_000
"""2026-09-21 14:13:20 UTC."""
NETWORK = "evm:31337"
HEADS = Heads(network=Head(latest=200, finalized=150), upstreams={"p1": Head(latest=200), "s1": Head(latest=200)})


def answer(text: bytes, *, travels: bool = True) -> Answer:
    """Return a result with its digest."""
    return Answer(
        kind="result", digest=xxh3_128_hexdigest(text), n_bytes=len(text), body=Raw(text) if travels else NO_BODY
    )


def primary(
    number: int,
    *,
    at: int = AT,
    method: str = "eth_getBlockByNumber",
    params: bytes = b'["0x64",false]',
    body: bytes = b'{"number":"0x64"}',
    attempts: tuple[Attempt, ...] = (Attempt(upstream="p1", duration_us=1500, status=200),),
    **members: object,
) -> PrimaryResponse:
    """Return one client request, number `number` of its worker."""
    return PrimaryResponse(
        **{  # type: ignore[arg-type]
            "v": VERSION,
            "event_id": f"00000000000000aa:{number}",
            "at": at,
            "network": NETWORK,
            "request_id": f"r{number}",
            "project": "main",
            "method": method,
            "params": Raw(params),
            "rpc_id": Raw(b"%d" % number),
            "duration_us": 3000,
            "upstream": "p1",
            "tier": "primary",
            "answer": answer(body),
            "attempts": attempts,
            "heads": HEADS,
            "shadows": {"s1": "mirrored"},
            **members,
        }
    )


def shadow(
    number: int,
    *,
    at: int = AT,
    method: str = "eth_getBlockByNumber",
    params: bytes = b'["0x64",false]',
    body: bytes = b'{"number":"0x64"}',
    other: bytes | None = None,
    **members: object,
) -> ShadowResponse:
    """Return the end of the mirrored call of request `number`; `other` is the shadow's answer where it differs."""
    return ShadowResponse(
        **{  # type: ignore[arg-type]
            "v": VERSION,
            "event_id": f"00000000000000aa:{number}s",
            "at": at,
            "network": NETWORK,
            "request_id": f"r{number}",
            "project": "main",
            "method": method,
            "params": Raw(params),
            "primary_upstream": "p1",
            "primary_duration_us": 3000,
            "primary": answer(body, travels=other is not None),
            "shadow_upstream": "s1",
            "shadow": answer(body, travels=False) if other is None else answer(other),
            "attempt": Attempt(upstream="s1", tier="shadow", kind="shadow", duration_us=2000, status=200),
            "heads": HEADS,
            "primary_heads": HEADS,
            **members,
        }
    )


def poll(number: int, *, at: int = AT) -> InternalAttempt:
    """Return a head poll of the paid upstream."""
    return InternalAttempt(
        v=VERSION,
        event_id=f"00000000000000ab:{number}",
        at=at,
        network=NETWORK,
        attempt_id=f"i{number}",
        project="main",
        attempt=Attempt(
            upstream="f1",
            vendor="alchemy",
            tier="fallback",
            kind="head_poll",
            method="eth_blockNumber",
            duration_us=900,
        ),
    )


def head(number: int, *, at: int = AT) -> HeadUpdate:
    return HeadUpdate(
        v=VERSION,
        event_id=f"00000000000000ac:{number}",
        at=at,
        network=NETWORK,
        upstream="p1",
        axis="latest",
        number=number,
    )


def reorg(number: int, *, at: int = AT) -> Reorg:
    return Reorg(
        v=VERSION, event_id=f"00000000000000ad:{number}", at=at, network=NETWORK, upstream="p1", number=number, depth=2,
        old_hash="0xa", new_hash="0xb",
    )  # fmt: skip


def breaker(number: int, *, at: int = AT) -> BreakerTransition:
    return BreakerTransition(
        v=VERSION, event_id=f"00000000000000ae:{number}", at=at, network=NETWORK, upstream="p1", from_state="closed",
        to_state="open", reason="timeout", counters={"timeout": 3, "status": number},
    )  # fmt: skip


def records(events: list[AnyEvent]) -> list[bytes]:
    """Return the events as they lie in a log."""
    return [codec.encode(event) for event in events]


def mixture(n: int, *, start: int = 0, step_ns: int = 1_000_000, at: int = AT) -> list[bytes]:
    """
    Return `n` records of all kinds, poison included, as a function of their numbers alone.

    `step_ns` apart; with a step of minutes they span days.
    """
    out = []
    for number in range(start, start + n):
        now = at + number * step_ns
        match number % 16:
            case 3:
                event: AnyEvent = poll(number, at=now)
            case 5:
                event = head(number, at=now)
            case 7 if number % 64 == 7:
                event = reorg(number, at=now)
            case 7 if number % 64 == 23:
                event = breaker(number, at=now)
            case 7 if number % 64 == 39:
                out.append(b'{"type":"primary_response","at":%d,"no":"event"}' % now)
                continue
            case 9 | 11 | 13 | 15:
                other = b'{"number":"0x%x"}' % number if number % 64 == 13 else None
                event = shadow(number, at=now, other=other)
            case 6:
                fallback = Attempt(
                    upstream="f1",
                    vendor="alchemy",
                    tier="fallback",
                    cause="empty_at_head",
                    start_us=1000,
                    duration_us=1500,
                )
                missed = Attempt(upstream="p1", duration_us=900, outcome="empty", is_empty=True)
                event = primary(number, at=now, attempts=(missed, fallback), upstream="f1", tier="fallback")
            case _:
                event = primary(number, at=now)
        out.append(codec.encode(event))
    return out
