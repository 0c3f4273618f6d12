"""
A store filled inside ClickHouse: two networks, eleven upstreams, shadows and trouble, all tables in proportion.

Upstreams are those of `tests.api.night`; rows are functions of their number, made in order of time. The last two hours
lie ahead of the clock, so that the present is as full at the end of a measurement as at its beginning.
"""

import time
from dataclasses import dataclass
from typing import Final

from analytics.store import Store

AHEAD_SECONDS: Final = 2 * 3600
ETH, BASE = "evm:1", "evm:8453"
PAIRS_PER_REQUEST: Final = {ETH: 2.4, BASE: 1.0}
"""Two shadows of Ethereum get every request, two get one in five; one of Base gets every request."""
ETH_PART: Final = 0.72
"""Of all pairs."""
POLL_SECONDS: Final = 2
POLLED: Final = {
    ETH: ("geth-1", "geth-2", "infura-eth", "node-b", "node-c", "chainstack-eth"),
    BASE: ("op-1", "op-2", "alchemy-base", "node-b-base"),
}
BLOCK_MS: Final = {ETH: 12_000, BASE: 2_000}
TOP: Final = {ETH: 26_437_118, BASE: 54_090_342}
BODIES_DAYS: Final = 7
GAUGE_SECONDS: Final = 10
ONE_INSERT: Final = "max_partitions_per_insert_block = 100, max_insert_threads = 1, max_threads = 2"


@dataclass(frozen=True, slots=True)
class Span:
    """How many pairs over how many days, until when."""

    n_pairs: int
    days: int
    now_ms: int

    @property
    def end_ms(self) -> int:
        return self.now_ms + AHEAD_SECONDS * 1000

    @property
    def start_ms(self) -> int:
        return self.end_ms - self.days * 86_400_000

    @property
    def length_ms(self) -> int:
        return self.end_ms - self.start_ms

    def n_requests(self, network: str) -> int:
        part = ETH_PART if network == ETH else 1 - ETH_PART
        return round(self.n_pairs * part / PAIRS_PER_REQUEST[network])


METHOD: Final = """multiIf({x} < 40, 'eth_call', {x} < 56, 'eth_getTransactionReceipt', {x} < 70, 'eth_getLogs',
    {x} < 82, 'eth_getBlockByNumber', {x} < 90, 'eth_getTransactionByHash', {x} < 98, 'eth_getBlockReceipts',
    '{last}')"""


def requests(span: Span, network: str) -> str:
    """
    Return the statement that fills `requests` of a network.

    One in a hundred leaves the primary for a paid fallback: by a hedge on Ethereum, for four causes on Base.
    """
    is_eth = network == ETH
    primaries = "['geth-1', 'geth-2']" if is_eth else "['op-1', 'op-2']"
    paid = "infura-eth" if is_eth else "alchemy-base"
    causes = "['hedge']" if is_eth else "['empty_at_head', 'breaker_open', 'timeout', 'beyond_head']"
    method = METHOD.format(x="h % 100", last="debug_traceTransaction" if is_eth else "eth_call")
    n = span.n_requests(network)
    return f"""
INSERT INTO gnomon_core.requests (at, request_id, project, network, user, agent, method, params, rpc_id, block_number,
    outcome, error_class, upstream, tier, n_attempts, cause, escaped, beyond_head, n_skipped_open, duration_us,
    request_bytes, response_bytes, answer_kind, answer_hash, head_latest, head_finalized, config_hash, event_id, log_id,
    topic, part, off)
SELECT
    fromUnixTimestamp64Milli(ms, 'UTC'), id, 'main', '{network}', ['wallet-api', 'indexer', 'indexer'][h % 3 + 1],
    'viem/2.0', {method}, concat('[\"0x', id, '\"]'), toString(number % 10000),
    toUInt64({TOP[network]} - intDiv({span.now_ms} - ms, {BLOCK_MS[network]}) - if(g % 10 < 8, 1000 + g % 4000, g % 4)),
    if(is_failed, 'error', 'result'), if(is_failed, 'timeout', ''),
    if(cause != '', '{paid}', {primaries}[g % 2 + 1]), if(cause != '', 'fallback', 'primary'),
    if(cause IN ('', 'breaker_open'), 1, 2), cause, cause != '', cause = 'beyond_head', cause = 'breaker_open',
    if(is_failed OR cause = 'timeout', 2000000, 4000 + g % 20000 + if(g % 97 = 0, g % 200000, 0)), 120, 900 + h % 4000,
    if(is_failed, 'none', 'result'), id, toUInt64({TOP[network]} - intDiv({span.now_ms} - ms, {BLOCK_MS[network]})),
    toUInt64({TOP[network]} - intDiv({span.now_ms} - ms, {BLOCK_MS[network]}) - 900), 'c0ffee',
    concat('{"00000000000000a1" if is_eth else "00000000000000a2"}:', toString(number)), 'bench', 'log',
    {1 if is_eth else 2}, number
FROM
(
    SELECT
        number,
        cityHash64(number, '{network}') AS h,
        cityHash64(number, '{network}', 1) AS g,
        lower(hex(sipHash128(number, '{network}'))) AS id,
        {span.start_ms} + intDiv(number * {span.length_ms}, {n}) + h % 1000 AS ms,
        if(h % 1000 < 10, {causes}[g % {1 if is_eth else 4} + 1], '') AS cause,
        cause = '' AND g % 2000 = 0 AS is_failed
    FROM numbers(1, {n})
)
SETTINGS {ONE_INSERT}"""


SHADOWS: Final = """
    (SELECT r.*,
        arrayJoin(if(network = 'evm:1', ['node-b', 'node-c', 'chainstack-eth', 'control'], ['node-b-base'])) AS shadow,
        cityHash64(off, shadow) AS x, cityHash64(off, shadow, 1) AS y
     FROM gnomon_core.requests AS r)"""
IS_MIRRORED: Final = "NOT (outcome = 'error') AND (shadow NOT IN ('chainstack-eth', 'control') OR off % 5 = 0)"


def decisions() -> str:
    """Return the statement that fills `shadow_decisions` from `requests`."""
    return f"""
INSERT INTO gnomon_core.shadow_decisions (at, request_id, project, network, upstream, method, decision, event_id,
    log_id, topic, part, off)
SELECT at, request_id, project, network, shadow, method, if({IS_MIRRORED}, 'mirrored', 'sampled_out'), event_id, log_id,
    topic, part, off
FROM {SHADOWS} SETTINGS {ONE_INSERT}"""


def comparisons(span: Span) -> str:
    """
    Return the statement that fills `comparisons` from `requests`.

    Of 10,000 pairs 30 differ, 300 do not once masked, 200 are tolerated, 6 have no answer; receipts of node-b differ
    twenty times as often since 65 hours.
    """
    since = span.now_ms - 65 * 3_600_000
    return f"""
INSERT INTO gnomon_core.comparisons (at, request_id, project, user, network, method, primary_upstream, shadow_upstream,
    outcome, class, classes, finality, settled, suspect, block_number, is_control, primary_kind, shadow_kind,
    primary_hash, shadow_hash, primary_bytes, shadow_bytes, primary_duration_us, shadow_duration_us, mask_version,
    n_findings, n_masked, params, head_latest, head_finalized, primary_head, shadow_head, config_hash, event_id, log_id,
    topic, part, off)
SELECT
    at + toIntervalMillisecond(60), request_id, project, user, network, method, upstream, shadow, verdict, kind,
    if(kind = 'none', [], [kind]), if(head_latest - block_number > 900, 'finalized', 'unfinalized'),
    if(verdict = 'mismatch', ['', '', 'primary_right', 'shadow_right'][y % 4 + 1], ''),
    if(verdict = 'mismatch', ['', 'shadow', 'shadow', 'primary'][y % 4 + 1], ''), block_number, shadow = 'control',
    'result', if(verdict = 'missing', 'none', 'result'), request_id,
    if(verdict = 'identical', request_id, lower(hex(sipHash128(request_id, shadow)))), response_bytes,
    response_bytes + if(verdict = 'mismatch', 7, 0), duration_us, 3000 + y % 18000, if(y % 2 = 0, 'm1', 'm2'),
    verdict = 'mismatch', if(verdict = 'identical_masked', 3, 0), if(verdict = 'identical', '', params), head_latest,
    head_finalized, head_latest, head_latest, config_hash,
    concat('00000000000000b', toString(place), ':', toString(seq)), log_id, topic, 10 + place, seq
FROM
(
    SELECT *,
        indexOf(['node-b', 'node-c', 'chainstack-eth', 'control', 'node-b-base'], shadow) AS place,
        if(shadow IN ('chainstack-eth', 'control'), intDiv(off, 5), off) AS seq,
        x % 10000 AS luck,
        multiIf(
            outcome = 'error', 'incomparable',
            luck < 30 AND shadow != 'control', 'mismatch',
            shadow = 'node-b' AND method = 'eth_getTransactionReceipt' AND luck < 630
                AND at >= fromUnixTimestamp64Milli({since}, 'UTC'), 'mismatch',
            luck < 930, 'identical_masked', luck < 1130, 'tolerated', luck < 1136, 'missing', luck < 1146, 'error',
            luck < 1147, 'undecided', 'identical') AS verdict,
        multiIf(verdict != 'mismatch', 'none', luck >= 30, 'value',
            ['value', 'hex_case', 'null_vs_absent', 'empty_vs_data'][y % 4 + 1]) AS kind
    FROM {SHADOWS}
    WHERE shadow NOT IN ('chainstack-eth', 'control') OR off % 5 = 0
)
SETTINGS {ONE_INSERT}"""


FINDINGS: Final = f"""
INSERT INTO gnomon_core.findings (at, request_id, network, method, shadow_upstream, path, generic_path, n_paths, class,
    primary_value, shadow_value, event_id, log_id, topic, part, off)
SELECT at, request_id, network, method, shadow_upstream, replaceOne(where_, '[*]', '[0]'), where_,
    if(where_ LIKE '%[*]%', 3, 1), class, '"0x1"', '"0x2"', event_id, log_id, topic, part, off
FROM
(
    SELECT *, if(class = 'value', '$.result.logs[*].logIndex',
        ['$.result.status', '$.result.gasUsed', '$.result.logs[*].data', '$.result.type'][cityHash64(off) % 4 + 1])
        AS where_
    FROM gnomon_core.comparisons
    WHERE n_findings > 0
)
SETTINGS {ONE_INSERT}"""


def bodies(span: Span) -> str:
    """Return the statement that fills `bodies` from `comparisons`: answers that differ, a week of them."""
    since = span.now_ms - BODIES_DAYS * 86_400_000
    logs = ",".join(
        f'{{"address":"0x3a7829fc00112233445566778899aabbccd74d46","logIndex":"0x\', {{}}, \'{place}",'
        f'"data":"0x{"0" * 58}0f4240","removed":false}}'
        for place in range(3)
    )
    body = f'\'{{"blockNumber":"0x1","gasUsed":"0x5208","logsBloom":"0x{"0" * 512}","status":"0x1","logs":[{logs}]}}\''
    own, others = body.replace("{}", "'a'"), body.replace("{}", "'b'")
    return f"""
INSERT INTO gnomon_core.bodies (at, hash, n_bytes, is_head_only, body, event_id, log_id, topic, part, off)
SELECT at, side.1, length(side.2), false, side.2, event_id, log_id, topic, part, off
FROM
(
    SELECT at, event_id, log_id, topic, part, off,
        arrayJoin([(primary_hash, concat({own})), (shadow_hash, concat({others}))]) AS side
    FROM gnomon_core.comparisons
    WHERE n_findings > 0 AND at >= fromUnixTimestamp64Milli({since}, 'UTC')
)
SETTINGS {ONE_INSERT}"""


_ATTEMPT: Final = """
INSERT INTO gnomon_core.attempts (at, attempt_id, idx, request_id, project, user, network, upstream, vendor, account,
    tier, kind, cause, method, outcome, error_class, is_empty, is_cancelled, is_wasted, start_us, duration_us,
    request_bytes, response_bytes, units, usd, status, block_number, head_latest, event_id, log_id, topic, part, off)
"""
_PRICED: Final = "toDecimal128(26, 12), toDecimal128('0.00001365', 12)"
_FREE: Final = "toDecimal128(0, 12), toDecimal128(0, 12)"


def first_calls() -> str:
    """Return the statement for the first call of each request: the primary's, unless its breaker was open."""
    return f"""{_ATTEMPT}
SELECT at, '', 0, request_id, project, user, network, if(cause = '', upstream, if(network = 'evm:1', 'geth-1', 'op-2')),
    '', '', 'primary', 'client', '', method,
    multiIf(cause = 'hedge', 'cancelled', cause IN ('empty_at_head', 'beyond_head'), 'empty', cause = 'timeout',
        'timeout', outcome = 'error', 'timeout', 'result') AS how,
    if(how = 'timeout', 'timeout', ''), how = 'empty', how = 'cancelled', false, 0, duration_us, request_bytes,
    response_bytes, {_FREE}, 200, block_number, head_latest, event_id, log_id, topic, part, off
FROM gnomon_core.requests WHERE cause != 'breaker_open' SETTINGS {ONE_INSERT}"""


def paid_calls() -> str:
    """Return the statement for the paid call of each request that left the primary."""
    return f"""{_ATTEMPT}
SELECT at, '', n_attempts - 1, request_id, project, user, network, upstream,
    if(network = 'evm:1', 'infura', 'alchemy') AS who, who, 'fallback', if(cause = 'hedge', 'hedge', 'client'), cause,
    method, 'result', '', false, false, cause = 'beyond_head', 4000, duration_us, request_bytes, response_bytes,
    {_PRICED}, 200, block_number, head_latest, event_id, log_id, topic, part, off
FROM gnomon_core.requests WHERE cause != '' SETTINGS {ONE_INSERT}"""


def mirrored_calls() -> str:
    """Return the statement for the mirrored call of each pair."""
    return f"""{_ATTEMPT}
SELECT at, '', 0, request_id, project, user, network, shadow_upstream,
    if(shadow_upstream = 'chainstack-eth', 'chainstack', '') AS who, who, 'shadow', 'shadow', '', method,
    if(outcome = 'missing', 'timeout', 'result'), if(outcome = 'missing', 'timeout', ''), false, false, false, 0,
    shadow_duration_us, 120, shadow_bytes, if(who = '', toDecimal128(0, 12), toDecimal128(20, 12)),
    if(who = '', toDecimal128(0, 12), toDecimal128('0.0000105', 12)), 200, block_number, head_latest, event_id, log_id,
    topic, part, off
FROM gnomon_core.comparisons SETTINGS {ONE_INSERT}"""


def polls(span: Span, network: str) -> str:
    """Return the statement for head polls: each upstream of a network every two seconds."""
    names = POLLED[network]
    n = span.length_ms // (POLL_SECONDS * 1000) * len(names)
    vendors = {"infura-eth": "infura", "chainstack-eth": "chainstack", "alchemy-base": "alchemy"}
    tiers = {name: "fallback" if name in ("infura-eth", "alchemy-base") else "primary" for name in names}
    tiers |= {name: "shadow" for name in names if name.startswith(("node-", "chainstack"))}
    proc, part = ("00000000000000c1", 21) if network == ETH else ("00000000000000c2", 22)
    return f"""{_ATTEMPT}
SELECT fromUnixTimestamp64Milli({span.start_ms} + intDiv(number, {len(names)}) * {POLL_SECONDS * 1000} + place * 90,
        'UTC') AS at,
    concat('poll-', toString(number)), 0, '', 'main', '', '{network}', {list(names)}[place + 1],
    {[vendors.get(name, "") for name in names]}[place + 1] AS who, who, {[tiers[name] for name in names]}[place + 1],
    'head_poll', '', 'eth_getBlockByNumber', 'result', '', false, false, false, 0,
    1000 + cityHash64(number) % 4000, 90, 600, if(who = '', toDecimal128(0, 12), toDecimal128(16, 12)),
    if(who = '', toDecimal128(0, 12), toDecimal128('0.0000084', 12)), 200, NULL, NULL,
    concat('{proc}:', toString(number)), 'bench', 'log', {part}, number
FROM (SELECT number, number % {len(names)} AS place FROM numbers(1, {n})) SETTINGS {ONE_INSERT}"""


def heads(span: Span, network: str) -> str:
    """Return the statement for `heads`: each upstream of a network sees each block, some of them late."""
    names = POLLED[network]
    n_blocks = span.length_ms // BLOCK_MS[network]
    proc, part = ("00000000000000d1", 31) if network == ETH else ("00000000000000d2", 32)
    first = TOP[network] - (span.now_ms - span.start_ms) // BLOCK_MS[network]
    return f"""
INSERT INTO gnomon_core.heads (at, network, upstream, axis, number, hash, parent_hash, source, event_id, log_id, topic,
    part, off)
SELECT fromUnixTimestamp64Milli({span.start_ms} + block * {BLOCK_MS[network]} + cityHash64(number) % 900
        + if({list(names)}[place + 1] IN ('node-c', 'op-2'), 2 * {BLOCK_MS[network]}, 0), 'UTC'),
    '{network}', {list(names)}[place + 1], axis, {first} + block - if(axis = 'latest', 0, 900),
    concat('0x', lower(hex(sipHash128(block, '{network}')))), '', 'poll', concat('{proc}:', toString(number)), 'bench',
    'log', {part}, number
FROM
(
    SELECT number, number % {len(names)} AS place, intDiv(number, {len(names)}) AS block,
        if(block % 33 = 32, 'finalized', 'latest') AS axis
    FROM numbers(1, {n_blocks * len(names)})
)
SETTINGS {ONE_INSERT}"""


def trouble(span: Span) -> list[str]:
    """Return the statements for what is rare: breakers, reorgs, alerts, gauges, dead letters."""
    at = f"fromUnixTimestamp64Milli({span.now_ms} - toInt64({{}}), 'UTC')"
    seconds = span.days * 86400 - AHEAD_SECONDS
    breakers = f"""
INSERT INTO gnomon_core.breaker_transitions (at, network, upstream, from_state, to_state, reason, scope, counters,
    event_id, log_id, topic, part, off)
SELECT {at.format(f"(400 - number) * {seconds * 1000 // 400} + 60000")}, 'evm:8453',
    if(number % 8 = 0, 'op-2', 'op-1'), from_to.1, from_to.2, 'timeout', 'upstream', map('timeout', 60),
    concat('00000000000000e1:', toString(number)), 'bench', 'log', 41, number
FROM (SELECT number, [('closed', 'open'), ('open', 'half_open'), ('half_open', 'open'), ('open', 'half_open'),
    ('half_open', 'closed')][number % 5 + 1] AS from_to FROM numbers(1, 400))"""
    reorgs = f"""
INSERT INTO gnomon_core.reorgs (at, network, upstream, number, depth, old_hash, new_hash, event_id, log_id, topic, part,
    off)
SELECT {at.format(f"(90 - number) * {seconds * 1000 // 90} + 90000")}, 'evm:1', 'geth-1', 26000000 + number,
    1 + number % 2, concat('0x', lower(hex(sipHash128(number)))), concat('0x', lower(hex(sipHash128(number, 1)))),
    concat('00000000000000e2:', toString(number)), 'bench', 'log', 42, number
FROM numbers(1, 90)"""
    rules = (
        ("BreakerFlapping", "evm:8453/op-1", 4, 3, "ticket"),
        ("FallbackSpend", "alchemy", 0.05, 0.02, "page"),
        ("HeadLag", "evm:8453/op-2", 13, 5, "ticket"),
    )
    alerts = [
        f"""
INSERT INTO gnomon_core.alerts (at, rule, state, subject, value, threshold, severity, since, delivered, fingerprint)
SELECT {at.format(f"(201 - number) * {seconds * 1000 // 202} + 1020000")} AS at, '{rule}',
    if(number % 2 = 1, 'firing', 'resolved'), '{subject}', {value}, {limit}, '{severity}', at, true, '{rule}-{subject}'
FROM numbers(1, 201)"""
        for rule, subject, value, limit, severity in rules
    ]
    gauges = f"""
INSERT INTO gnomon_core.gauges (at, name, subject, value)
SELECT fromUnixTimestamp64Milli({span.start_ms} + intDiv(number, 12) * {GAUGE_SECONDS * 1000}, 'UTC'),
    ['log_written_events', 'log_consumed_events', 'log_dropped_events', 'log_unread_ratio'][number % 4 + 1],
    toString(intDiv(number % 12, 4)), if(number % 4 < 2, number, 0)
FROM numbers({span.length_ms // (GAUGE_SECONDS * 1000) * 12}) SETTINGS {ONE_INSERT}"""
    dead = f"""
INSERT INTO gnomon_core.dead_letters (at, event_at, reason, detail, bytes, log_id, topic, part, off)
SELECT {at.format("number * 3600000")} AS at, at, 'no_event', 'no JSON', 'poison', 'bench', 'log', 51, number
FROM numbers(1, 5)"""
    return [breakers, reorgs, *alerts, gauges, dead]


ROUNDED: Final = """
if(duration_us < 32, duration_us, toUInt32(bitShiftLeft(bitShiftRight(duration_us, s), s) + bitShiftRight(bitShiftLeft(
    toUInt32(1), s), 1)))"""
ROLLUPS: Final = (
    f"""
INSERT INTO gnomon_core.spend_hourly (hour, project, network, vendor, account, upstream, tier, kind, cause, method, n,
    n_wasted, n_unpriced, units, usd, log_id, topic, part, off)
SELECT toStartOfHour(at), project, network, vendor, account, upstream, tier, kind, cause, method, count(),
    countIf(is_wasted), countIf(isNull(usd)), sum(units), sum(usd), log_id, topic, part, max(off)
FROM gnomon_core.attempts GROUP BY ALL SETTINGS {ONE_INSERT}""",
    f"""
INSERT INTO gnomon_core.divergence_minutely (minute, network, method, shadow_upstream, outcome, class, finality, n,
    log_id, topic, part, off)
SELECT toStartOfMinute(at), network, method, shadow_upstream, outcome, class, finality, count(), log_id, topic, part,
    max(off)
FROM gnomon_core.comparisons GROUP BY ALL SETTINGS {ONE_INSERT}""",
    f"""
INSERT INTO gnomon_core.health_minutely (minute, network, upstream, tier, n, n_failed, n_empty, durations, log_id,
    topic, part, off)
SELECT minute, network, upstream, tier, sum(m), sum(m_failed), sum(m_empty),
    mapFromArrays(groupArrayIf(rounded, m_timed > 0), groupArrayIf(m_timed, m_timed > 0)), log_id, topic, part, max(off)
FROM
(
    SELECT toStartOfMinute(at) AS minute, network, upstream, tier, log_id, topic, part, max(a.off) AS off, count() AS m,
        countIf(outcome IN ('error', 'timeout', 'transport')) AS m_failed, countIf(is_empty) AS m_empty,
        countIf(outcome != 'cancelled') AS m_timed, toUInt8(greatest(toInt8(ceil(log2(duration_us + 1))) - 5, 0)) AS s,
        {ROUNDED} AS rounded
    FROM gnomon_core.attempts AS a WHERE kind IN ('client', 'retry', 'hedge', 'probe', 'shadow')
    GROUP BY minute, network, upstream, tier, log_id, topic, part, s, rounded
)
GROUP BY minute, network, upstream, tier, log_id, topic, part SETTINGS {ONE_INSERT}""",
    """
INSERT INTO gnomon_core.sink_progress (log_id, topic, part, hour, n, next, epoch, log_end, dropped, at)
SELECT log_id, topic, part, hour, count(), max(off) + 1, 1, max(off) + 1, 0, now64(3, 'UTC')
FROM
(
    SELECT toStartOfHour(at) AS hour, log_id, topic, part, off FROM gnomon_core.requests
    UNION ALL SELECT toStartOfHour(at), log_id, topic, part, off FROM gnomon_core.comparisons
    UNION ALL SELECT toStartOfHour(at), log_id, topic, part, off FROM gnomon_core.attempts WHERE attempt_id != ''
    UNION ALL SELECT toStartOfHour(at), log_id, topic, part, off FROM gnomon_core.heads
    UNION ALL SELECT toStartOfHour(at), log_id, topic, part, off FROM gnomon_core.reorgs
    UNION ALL SELECT toStartOfHour(at), log_id, topic, part, off FROM gnomon_core.breaker_transitions
    UNION ALL SELECT toStartOfHour(event_at), log_id, topic, part, off FROM gnomon_core.dead_letters
)
GROUP BY log_id, topic, part, hour""",
)


def fill(store: Store, span: Span) -> dict[str, float]:
    """Fill a migrated store that is empty; return how long each step took, seconds."""
    took: dict[str, float] = {}
    steps: list[tuple[str, list[str]]] = [
        ("requests", [requests(span, ETH), requests(span, BASE)]),
        ("shadow_decisions", [decisions()]),
        ("comparisons", [comparisons(span)]),
        ("findings, bodies", [FINDINGS, bodies(span)]),
        (
            "attempts",
            [first_calls(), paid_calls(), mirrored_calls(), *(polls(span, network) for network in POLLED)],
        ),
        ("heads", [heads(span, network) for network in POLLED]),
        ("rare", trouble(span)),
        ("rollups", list(ROLLUPS)),
    ]
    for name, statements in steps:
        started = time.monotonic()
        for statement in statements:
            store.command(statement)
        took[name] = time.monotonic() - started
    return took
