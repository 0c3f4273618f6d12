"""
The event contract, version 1: what the proxy says of every request, and what every consumer reads.

One event is one JSON object. Unknown members are ignored; a `v` above `VERSION` is not read (dead letter). Members
at their default are left out on the wire. Bodies travel as raw JSON fragments, byte for byte (`Raw`), or in base64
where they are no JSON (`*_base64`).

Where a value may be absent, numbers use None and words use ''. Times: `at` is the proxy's UTC clock in
nanoseconds at the end of what the event tells; durations and `start_us` are monotonic microseconds.

`event_id` is `proc:seq`: `proc` is the boot id of the worker process (16 hex digits), `seq` counts its events from 0
without a gap, so that a gap shows a loss.
"""

from typing import Literal

from msgspec import Raw, Struct

VERSION = 1

NO_BODY = Raw(b"")
"""A fragment that does not travel."""

RequestOutcome = Literal["result", "verdict", "error", "invalid", "rejected", "cancelled"]
AttemptOutcome = Literal["result", "empty", "verdict", "error", "timeout", "transport", "cancelled"]
ErrorClass = Literal[
    "", "revert", "halt", "nonce", "invalid_params", "method_not_found", "rate_limited", "quota", "unauthorized",
    "range_limit", "missing_data", "unknown_block", "internal", "status", "timeout", "transport", "parse", "validate",
    "rpcerror", "cancelled", "no_upstream",
]  # fmt: skip
Kind = Literal["client", "retry", "hedge", "probe", "head_poll", "chain_check", "subscription", "settle", "shadow"]
Tier = Literal["primary", "fallback", "shadow"]
Cause = Literal[
    "", "primary_error", "timeout", "empty_at_head", "beyond_head", "breaker_open", "quota", "rate_limited",
    "cordoned", "hedge", "retry", "policy_order",
]  # fmt: skip
Decision = Literal[
    "mirrored", "short_circuited", "write", "method_excluded", "out_of_range", "sampled_out", "budget", "shed", "size"
]
Axis = Literal["latest", "safe", "finalized"]
HeadSource = Literal["poll", "subscription", "response"]
BreakerState = Literal["closed", "open", "half_open"]
AnswerKind = Literal["result", "error", "none"]
"""`none`: there is no JSON-RPC answer (timeout, transport, HTML page, cut short)."""


class Head(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Block numbers known when the request was answered; None = unknown, never 0 for unknown."""

    latest: int | None = None
    """Newest block."""
    safe: int | None = None
    """Safe block."""
    finalized: int | None = None
    """Finalised block."""


class Heads(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """The network's heads, and those of each upstream (shadows included) that took part."""

    network: Head = Head()
    """The network's."""
    upstreams: dict[str, Head] = {}
    """By upstream, shadows included."""


class Attempt(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One call to one upstream."""

    upstream: str
    """Its id."""
    vendor: str = ""
    """The company behind it; empty = your own node."""
    account: str = ""
    """Whose bill it is on; empty = none named."""
    tier: Tier = "primary"
    """What the upstream is for."""
    kind: Kind = "client"
    """Why the call was made."""
    cause: Cause = ""
    """Why it left the primary."""
    method: str = ""
    """Empty: the request's own method."""
    start_us: int = 0
    """Since the request's start; for internal calls 0."""
    duration_us: int = 0
    """Until the whole answer was there, or until it was given up."""
    request_bytes: int = 0
    """0: the call never left the proxy (a refused connection, none free in time); it costs nothing then."""
    response_bytes: int = 0
    """Bytes of the answer's body, as they came."""
    status: int = 0
    """HTTP status; 0 = none came."""
    outcome: AttemptOutcome = "result"
    """How it ended."""
    error_class: ErrorClass = ""
    """What went wrong."""
    error_code: int | None = None
    """JSON-RPC `error.code` where one came."""
    is_empty: bool = False
    """The result was null, `""`, `"0x"`, `[]` or `{}`."""
    is_cancelled: bool = False
    """It was ended because nobody needed it any more."""
    is_duplicate: bool = False
    """It answered a request that another attempt had answered already."""
    n_batch: int = 1
    """Elements of the upstream batch that this call travelled in."""


class Answer(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One answer: the raw text of its `result` or `error` member."""

    kind: AnswerKind = "none"
    """Result, error, or no JSON-RPC answer at all."""
    digest: str = ""
    """xxh3-128 of the raw fragment, 32 hex digits; empty for kind `none`."""
    n_bytes: int = 0
    """Length of the fragment."""
    body: Raw = NO_BODY
    """The fragment, where it travels; its bytes have the digest above."""
    body_base64: str = ""
    """Head of a text that is no JSON (kind `none`), or of a fragment above `maxBodyBytes`."""
    response_block: int | None = None
    """The block number that the answer itself names, for methods whose finality depends on it."""


class Event(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True, tag_field="type"):
    """The envelope."""

    v: int
    """Version of the contract."""
    event_id: str
    """`proc:seq`, see above."""
    at: int
    """End of what the event tells, nanoseconds since 1970, UTC."""
    network: str
    """Chain, `evm:1`."""
    config_hash: str = ""
    """Which configuration was in force."""


class PrimaryResponse(Event, frozen=True, gc=False, omit_defaults=True, kw_only=True, tag="primary_response"):
    """One client request (each element of a batch is one) and how it was answered."""

    request_id: str
    """Ours, `X-Gnomon-Request-Id`."""
    batch_id: str = ""
    """Common to the elements of one batch; empty = no batch."""
    project: str = ""
    """Project of the configuration."""
    user: str = ""
    """Who asked, by the project's `auth`; empty = nobody named."""
    agent: str = ""
    """The client's User-Agent, at most 64 characters."""
    method: str = ""
    """JSON-RPC method."""
    params: Raw = NO_BODY
    """As they came."""
    rpc_id: Raw = NO_BODY
    """The client's id, its bytes as they came."""
    request_bytes: int = 0
    """Bytes of the client's request."""
    response_bytes: int = 0
    """Bytes of the JSON-RPC answer as sent to the client."""
    duration_us: int = 0
    """From the whole request until its answer was there."""
    outcome: RequestOutcome = "result"
    """How it ended."""
    error_class: ErrorClass = ""
    """What went wrong."""
    upstream: str = ""
    """Whose answer was served; empty where none was."""
    tier: str = ""
    """Its tier."""
    cause: Cause = ""
    """Cause of the served attempt."""
    answer: Answer = Answer()
    """What was served."""
    attempts: tuple[Attempt, ...] = ()
    """Each call made for it, in order."""
    heads: Heads = Heads()
    """As known when it was answered."""
    short_circuited: bool = False
    """Answered null without a call: a block of the future."""
    beyond_head: bool = False
    """It asked for a block above the known head."""
    escaped: bool = False
    """No primary answered, so the fallbacks were asked."""
    n_skipped_open: int = 0
    """Upstreams skipped because their breaker was open."""
    shadows: dict[str, Decision] = {}
    """Shadow upstream → decision; every shadow of the network has one."""
    reject_reason: str = ""
    """For outcomes `invalid` and `rejected`: why, a constant phrase."""


class ShadowResponse(Event, frozen=True, gc=False, omit_defaults=True, kw_only=True, tag="shadow_response"):
    """The end of one mirrored call: both answers where they differ, digests alone where their bytes are equal."""

    request_id: str
    """The request's that was mirrored."""
    project: str = ""
    """Project of the configuration."""
    user: str = ""
    """Who asked."""
    method: str = ""
    """JSON-RPC method."""
    params: Raw = NO_BODY
    """As they came."""
    primary_upstream: str = ""
    """Whose answer was served."""
    primary_outcome: RequestOutcome = "result"
    """How the request ended."""
    primary_error_class: ErrorClass = ""
    """What went wrong there."""
    primary_duration_us: int = 0
    """How long the request took."""
    primary: Answer = Answer()
    """The answer that was served."""
    shadow_upstream: str = ""
    """Who was mirrored to."""
    shadow: Answer = Answer()
    """Its answer."""
    attempt: Attempt
    """The mirrored call."""
    heads: Heads = Heads()
    """As known when the shadow's answer came; the network's and both upstreams'."""
    primary_heads: Heads = Heads()
    """As known when the primary's answer came."""
    ignore_fields: tuple[str, ...] = ()
    """Masks configured for this shadow and method."""
    tolerate: tuple[str, ...] = ()
    """Tolerances configured for this shadow and method."""
    is_control: bool = False
    """It went to the upstream that served, again: its own noise."""


class InternalAttempt(Event, frozen=True, gc=False, omit_defaults=True, kw_only=True, tag="attempt"):
    """A call that no client asked for: head poll, chain check, probe, settling call."""

    attempt_id: str
    """Its own id; no request has it."""
    project: str = ""
    """Project of the configuration."""
    attempt: Attempt
    """The call."""
    params: Raw = NO_BODY
    """Of a probe, which asks what a client has asked; other calls ask for the newest block."""
    latest: int | None = None
    """The network's head, for a probe."""


class HeadUpdate(Event, frozen=True, gc=False, omit_defaults=True, kw_only=True, tag="head_update"):
    """A change of one upstream's head on one axis; the first observation too."""

    upstream: str
    """Whose head."""
    axis: Axis
    """Which head."""
    number: int
    """Block number."""
    hash: str = ""
    """Its hash; empty = not told."""
    parent_hash: str = ""
    """Its parent's hash; empty = not told."""
    source: HeadSource = "poll"
    """How we know."""
    is_outlier: bool = False
    """Far above all others: it does not set the network's head."""


class Reorg(Event, frozen=True, gc=False, omit_defaults=True, kw_only=True, tag="reorg"):
    """An upstream has other blocks now than it had told before."""

    upstream: str
    """Who told it."""
    number: int
    """Lowest block that is known to be replaced."""
    depth: int
    """From there to the head that it had."""
    old_hash: str
    """Hash of that block before."""
    new_hash: str
    """Hash of that block now."""


class BreakerTransition(Event, frozen=True, gc=False, omit_defaults=True, kw_only=True, tag="breaker_transition"):
    """A breaker changed its state; or an upstream is held back (quota, `Retry-After`), or let go again."""

    upstream: str
    """Whose breaker."""
    from_state: BreakerState
    """State before."""
    to_state: BreakerState
    """State now."""
    reason: str = ""
    """What decided."""
    scope: str = "*"
    """Methods that the breaker is for; `*` = all."""
    counters: dict[str, int] = {}
    """Calls, misses, skipped and each reason since the breaker was made; empty for a hold (quota, `Retry-After`)."""


AnyEvent = PrimaryResponse | ShadowResponse | InternalAttempt | HeadUpdate | Reorg | BreakerTransition
