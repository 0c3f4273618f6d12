"""
The wordings of errors, for codes that say nothing; `gnomon.rpc.errors` decides when a text may be read at all.

One alternative of a regular expression a line, matched anywhere in the lower-cased message. Order matters: the first
class that matches wins, and what a contract says of itself (revert, nonce, halt) comes before what a provider says of
its service.
"""

import re
from typing import Final

from gnomon.events.contract import ErrorClass


def _any_of(lines: str) -> re.Pattern[str]:
    return re.compile("|".join(line.strip() for line in lines.strip().splitlines()))


REVERT: Final = _any_of(
    r"""
    execution reverted
    transaction reverted
    vm exception while processing transaction: revert
    evm revert
    ^(?:err: |error: )?revert(?:ed)?\b
    reverted with (?:reason|custom error|panic|an unrecognized)
    vm execution error.*revert
    revert reason
    contract_revert_executed
    (?:contract|function|call) reverted\b
    """
)
NONCE: Final = _any_of(
    r"""
    nonce (?:is )?too (?:low|high)
    already known
    known transaction
    alreadyknown
    already imported
    oldnonce
    nonce has max value
    nonce has already been used
    replacement transaction underpriced
    replacementnotallowed
    invalid nonce
    nonce gap
    already exists? in (?:the )?(?:mem)?pool
    tx already in mempool
    (?:could not|cannot) replace existing
    """
)
HALT: Final = _any_of(
    r"""
    out ?of ?gas
    stack ?(?:underflow|overflow|limit reached)
    invalid (?:opcode|jump|bytecode|sender|signature)
    bad ?(?:instruction|jump)
    opcodenotfound
    evm ?error
    gas uint64 overflow
    max (?:init)?code size exceeded
    createcontractsizelimit
    write protection
    state change during static
    return data out of bounds
    outofoffset
    contract (?:address )?collision
    contract creation code storage
    max call depth exceeded
    calltoodeep
    precompiled? (?:error|failed)
    execution failed due to an exception
    vm execution error
    intrinsic gas
    insufficient ?(?:funds|balance|sender balance)
    gas required exceeds
    exceeds (?:the )?(?:block )?gas limit
    gas limit (?:is )?too
    gas limit exceeded
    block base fee
    fee ?cap
    underpriced
    max priority fee
    gas price (?:too low|below)
    feetoolow
    upfront cost
    sender (?:is )?not an eoa
    sender doesn't have enough funds
    tx fee .* exceeds the configured cap
    transaction type not supported
    initcode size
    floor data gas
    """
)
PER_SECOND: Final = _any_of(
    r"""
    (?:per|/) ?(?:second|sec\b|minute|min\b)
    rate[- ]?limit
    over rate
    call rate
    too many (?:requests|connections)
    throttl
    slow down
    \brps\b
    request limit reached
    concurrent(?: requests?)? limit
    exceeded .*(?:throughput|compute units per)
    limit your requests
    """
)
RANGE: Final = _any_of(
    r"""
    query returned more than
    block range .{0,30}(?:limit|too|exceed|large|wide|max)
    (?:up to|limit|maximum|large\w*|at most) .{0,30}(?:block range|blocks\b)
    range (?:is )?(?:too|limit)
    ranges? over
    range .{0,40}(?:exceed|larger|greater|limited)
    exceed\w* .{0,40}(?:block )?range
    max\w* .{0,24}(?:blocks|results?|logs?|range)
    log response size
    logs? .{0,30}limit
    response ?(?:size|is|body)? ?.{0,30}(?:too (?:large|big)|exceed|should not|larger|greater)
    too many (?:results|logs|blocks|addresses|topics)
    limited to .{0,40}(?:block|range|results|logs)
    more than \d[\d,]* (?:results|logs|blocks)
    result (?:set )?(?:is )?too (?:large|big)
    size (?:is )?(?:too (?:large|big)|exceed)
    query (?:exceeds|timeout exceeded)
    specify less number of addresses
    batch .{0,20}(?:too large|limit)
    """
)
QUOTA: Final = _any_of(
    r"""
    quota
    billing
    payment
    monthly
    daily
    upgrade (?:your|to|scaling)
    (?:usage|capacity|request count|plan|credit|account) limit
    out of (?:credits|compute)
    insufficient (?:credits?|compute)
    credits? (?:have been )?(?:exhausted|used up|exceeded|limit)
    reached your
    subscription
    free ?tier
    paid plan
    """
)
UNAUTHORIZED: Final = _any_of(
    r"""
    unauthori[sz]ed
    (?:invalid|missing|wrong|unknown|expired|no|bad|valid|your) (?:api[ -]?key|access token|auth|token|project id|jwt)
    api key (?:is|not|has)
    authenticat
    forbidden
    access denied
    permission denied
    not authori[sz]ed
    app(?:lication)? (?:is )?inactive
    origin .{0,30}not allowed
    """
)
MISSING: Final = _any_of(
    r"""
    missing ?trie ?node
    prun(?:ed|ing)
    state .{0,60}(?:not available|unavailable|is not|not found|missing|does not exist)
    (?:historical|ancient|history|old) .{0,40}(?:state|data|block|node|request|not|unavailable|disabled)
    no (?:state available|historical|trace)
    state histories
    archive
    world state unavailable
    distance to target block
    proof window
    transaction (?:\S+ )?not found
    receipts? (?:\S+ )?not (?:found|available)
    header for hash not found
    trac(?:e|ing) .{0,20}not (?:available|found)
    not yet indexed
    transaction indexing
    indexing is in progress
    data .{0,20}not (?:available|found)
    before (?:the )?(?:earliest|first available)
    resource not found
    """
)
UNKNOWN_BLOCK: Final = _any_of(
    r"""
    header not found
    unknown (?:block|header|hash|ancestor)
    \b(?:block|header|height)\b.{0,90}(?:not found|not available|unavailable|does ?n.t exist|is in the future|unknown)
    \b(?:block|header|height)\b.{0,90}not (?:yet )?(?:reached|produced|imported|synced|processed)
    \b(?:block|header|height)\b.{0,90}(?:out of range|is not currently canonical|must be less than|in the future)
    (?:could not|cannot|can't|couldn't|unable to|failed to) (?:find|get|load|query) .{0,24}(?:block|header|height)
    not (?:currently )?canonical
    non-?canonical
    beyond (?:the )?(?:current )?(?:head|latest|tip)
    after last accepted block
    unfinalized data
    (?:higher than|greater than|ahead of) (?:the )?(?:latest|current|head)
    no block (?:found|with)
    requested a future
    """
)
METHOD: Final = _any_of(
    r"""
    method .{0,60}(?:not (?:found|supported|available|allowed|enabled|implemented|whitelisted|exist)|does not exist)
    method .{0,60}(?:is not|disabled|unsupported|blocked|restricted)
    (?:unsupported|unknown|unrecognized|no such) (?:rpc )?method
    not (?:supported|implemented|whitelisted)
    (?:namespace|module|api) .{0,40}(?:disabled|not (?:enabled|available|found|supported))
    rpc method is
    batch(?: requests?)? (?:is |are )?(?:disabled|not )
    """
)
TIMEOUT: Final = _any_of(
    r"""
    time[d]?[ -]?out
    deadline exceeded
    took too long
    (?:context|request) cancell?ed
    """
)
NO_UPSTREAM: Final = _any_of(
    r"""
    no (?:(?:healthy|available|suitable|live|working) )*(?:upstream|backend|server|provider|endpoint)s?\b
    no (?:healthy|available|suitable|live|working) (?:node|peer)s?\b
    (?:upstream|backend|provider|node)s? .{0,24}(?:exhausted|unavailable|failed|offline|down\b)
    can(?:'t|not) route
    bad gateway
    service unavailable
    network error
    connection (?:refused|reset|closed)
    """
)
PARAMS: Final = _any_of(
    r"""
    invalid (?:argument|params?|parameters?|request|input|block|hex|address|hash|type|json|value|length|method param)
    missing (?:value for )?(?:required )?(?:argument|param|parameter|field)
    too (?:many|few) (?:arguments|params|parameters)
    cannot unmarshal
    (?:hex|empty) (?:string|number)
    odd length
    (?:failed to|could not|unable to) (?:parse|decode)
    parse error
    expected .{0,40}(?:got|but)
    must be
    malformed
    not a valid
    invalid character
    data did not match
    unknown field
    wrong number of
    rlp:
    typed transaction too short
    genesis is not traceable
    is not a precompile
    reward percentile
    deserializ
    """
)

TEXTS: Final[tuple[tuple[re.Pattern[str], ErrorClass], ...]] = (
    (REVERT, "revert"),
    (NONCE, "nonce"),
    (HALT, "halt"),
    (PER_SECOND, "rate_limited"),
    (RANGE, "range_limit"),
    (QUOTA, "quota"),
    (UNAUTHORIZED, "unauthorized"),
    (MISSING, "missing_data"),
    (UNKNOWN_BLOCK, "unknown_block"),
    (METHOD, "method_not_found"),
    (NO_UPSTREAM, "no_upstream"),
    (TIMEOUT, "timeout"),
    (PARAMS, "invalid_params"),
)
"""First match wins."""

PATTERN_BY_CLASS: Final = {error_class: pattern for pattern, error_class in TEXTS}

REFUSED_PARAMS: Final[tuple[tuple[re.Pattern[str], ErrorClass], ...]] = (
    (
        _any_of(
            "beyond (?:the )?(?:current )?(?:head|latest|tip)\nheader not found\nnot currently canonical\nin the future"
        ),
        "unknown_block",
    ),
    (_any_of("distance to target block\nproof window\nprun(?:ed|ing)\nmissing trie node\narchive"), "missing_data"),
)
"""
Refusals that nodes send as "invalid params" (-32602) though the parameters are in order: reth's proof window, geth's
log filter above the head.
"""
