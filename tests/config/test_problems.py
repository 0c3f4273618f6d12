"""Whatever is wrong with a file is said, all at once, with its place."""

from pathlib import Path

import pytest

from gnomon.config.errors import ConfigError
from gnomon.config.load import load, loads

UPSTREAM = "{id: a, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}"


def problems(text: str, *, allow_insecure: bool = False) -> list[str]:
    try:
        loads(text, environment={}, allow_insecure=allow_insecure)
    except ConfigError as error:
        return [f"{problem.path}: {problem.message}" for problem in error.problems]
    return []


def project(body: str = f"upstreams: [{UPSTREAM}]", more: str = "") -> str:
    return f"projects:\n- id: main\n  {body}\n{more}"


def upstream(more: str) -> str:
    return project(f"upstreams: [{UPSTREAM[:-1]}, {more}}}]")


def network(more: str, evm: str = "") -> str:
    return project(f"networks: [{{architecture: evm, evm: {{chainId: 1{evm}}}{more}}}]\n  upstreams: [{UPSTREAM}]")


N, U = "projects[0].networks[0]", "projects[0].upstreams[0]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # unknown keys, in the nine places that eRPC was measured with, and below `gnomon`
        pytest.param(project(more="projets: []"), "projets: unknown key, did you mean `projects`?", id="key top"),
        pytest.param(
            project("upstream: []"), "projects[0].upstream: unknown key, did you mean `upstreams`?", id="key project"
        ),
        pytest.param(
            network(", failSafe: []"), f"{N}.failSafe: unknown key, did you mean `failsafe`?", id="key network"
        ),
        pytest.param(
            network("", ", chainID: 1"), f"{N}.evm.chainID: unknown key, did you mean `chainId`?", id="key network.evm"
        ),
        pytest.param(upstream("endpont: x"), f"{U}.endpont: unknown key, did you mean `endpoint`?", id="key upstream"),
        pytest.param(
            project(
                "upstreams: [{id: a, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1, state_poller_interval: 1s}}]"
            ),
            f"{U}.evm.state_poller_interval: unknown key, did you mean `statePollerInterval`?",
            id="key upstream.evm",
        ),
        pytest.param(
            upstream("shadow: {enabled: true, sampleRte: 1}"),
            f"{U}.shadow.sampleRte: unknown key, did you mean `sampleRate`?",
            id="key shadow",
        ),
        pytest.param(
            upstream("failsafe: [{timeouts: {}}]"),
            f"{U}.failsafe[0].timeouts: unknown key, did you mean `timeout`?",
            id="key failsafe",
        ),
        pytest.param(
            upstream("failsafe: [{retry: {maxAttempt: 1}}]"),
            f"{U}.failsafe[0].retry.maxAttempt: unknown key, did you mean `maxAttempts`?",
            id="key retry",
        ),
        pytest.param(
            project(more="gnomon: {prox: {}}"), "gnomon.prox: unknown key, did you mean `proxy`?", id="key gnomon"
        ),
        # durations
        *(
            pytest.param(
                upstream(f"failsafe: [{{timeout: {{duration: {text}}}}}]"),
                f"{U}.failsafe[0].timeout.duration: {text!r} is not a duration",
                id=f"duration {text}",
            )
            for text in ("5 seconds", "abc", "5", "1 minute", "5 sec")
        ),
        pytest.param(
            upstream("failsafe: [{timeout: {duration: 0s}}]"),
            f"{U}.failsafe[0].timeout.duration: 0s must be longer than 0",
            id="timeout 0s",
        ),
        pytest.param(
            upstream("failsafe: [{timeout: {duration: -5s}}]"),
            f"{U}.failsafe[0].timeout.duration: -5s is negative",
            id="timeout -5s",
        ),
        pytest.param(
            upstream("failsafe: [{timeout: {}}]"), f"{U}.failsafe[0].timeout.duration: is missing", id="timeout empty"
        ),
        pytest.param(
            upstream("failsafe: [{timeout: {duration: {quantile: 1.0}}}]"),
            f"{U}.failsafe[0].timeout.duration: the quantile 1 must lie",
            id="quantile 1",
        ),
        pytest.param(
            upstream("failsafe: [{timeout: {duration: {quantile: 0.5, min: 9s, max: 1s}}}]"),
            f"{U}.failsafe[0].timeout.duration: the least (9 s) is above the most (1 s)",
            id="min above max",
        ),
        pytest.param(
            upstream("failsafe: [{retry: {maxAttempts: -1}}]"),
            f"{U}.failsafe[0].retry.maxAttempts: -1 is below 1",
            id="attempts -1",
        ),
        pytest.param(
            upstream("shadow: {enabled: true, sampleRate: 1.5}"),
            f"{U}.shadow.sampleRate: 1.5 is above 1",
            id="rate 1.5",
        ),
        pytest.param(
            upstream("shadow: {enabled: true, sampleRate: -1}"), f"{U}.shadow.sampleRate: -1 is below 0", id="rate -1"
        ),
        pytest.param(
            upstream("shadow: {enabled: true, tolerate: [hexcase]}"),
            f"{U}.shadow.tolerate[0]: tolerance 'hexcase' names no class of difference; there are stale_head,",
            id="tolerance unknown",
        ),
        pytest.param(
            upstream("shadow: {enabled: true, tolerate: {eth_call: [hex_case], eth_getLogs: ['value@a..b']}}"),
            f"{U}.shadow.tolerate.eth_getLogs[0]: mask 'a..b', character 3",
            id="tolerance path",
        ),
        pytest.param(
            project(more="gnomon: {shadow: {tolerate: [hex]}}"),
            "gnomon.shadow.tolerate[0]: tolerance 'hex' names no class",
            id="tolerance unknown for all",
        ),
        *(
            pytest.param(
                upstream(f"shadow: {{enabled: true, ignoreFields: {{eth_getLogs: ['*.data', '{mask}']}}}}"),
                f"{U}.shadow.ignoreFields.eth_getLogs[1]: mask {mask!r}, character {at}: {said}",
                id=f"mask {mask}",
            )
            for mask, at, said in (
                ("a..b", 3, "an empty segment"),
                ("a.", 2, "ends in a dot"),
                ("$.a", 1, "masks start"),
            )
        ),
        # policies in the wrong place or without sense
        pytest.param(
            network(", failsafe: [{circuitBreaker: {}}]"),
            f"{N}.failsafe[0].circuitBreaker: a breaker belongs",
            id="network breaker",
        ),
        pytest.param(
            upstream("breaker: {}, failsafe: [{circuitBreaker: {}}]"), f"{U}.breaker: `breaker` and", id="two breakers"
        ),
        pytest.param(
            upstream("failsafe: [{circuitBreaker: {failureThresholdCount: 5, failureThresholdCapacity: 4}}]"),
            f"{U}.failsafe[0].circuitBreaker: failureThresholdCount (5) is above",
            id="breaker never opens",
        ),
        pytest.param(
            upstream("failsafe: [{matchMethod: '(eth_call|!eth_getLogs'}]"),
            f"{U}.failsafe[0].matchMethod: '(eth_call|!eth_getLogs' is not a pattern of methods (a `)` is missing)",
            id="pattern without an end",
        ),
        pytest.param(
            project(more="rateLimiters: {budgets: [{id: b, rules: [{method: 'eth_*|', maxCount: 1}]}]}"),
            "rateLimiters.budgets[0].rules[0].method: 'eth_*|' is not a pattern of methods",
            id="pattern of a rate limit",
        ),
        pytest.param(upstream("ignoreMethods: ['']"), f"{U}.ignoreMethods[0]: is empty", id="pattern empty"),
        pytest.param(
            project(f"ignoreMethods: ['a|']\n  upstreams: [{UPSTREAM}]"),
            "projects[0].ignoreMethods[0]: 'a|' is not",
            id="pattern with nothing behind or",
        ),
        # WebSocket endpoints
        pytest.param(
            project("upstreams: [{id: a, endpoint: 'ws://127.0.0.1:1', evm: {chainId: 1}}]"),
            "projects[0].networks: network evm:1 has no upstream to call: ws endpoints give heads only",
            id="only heads",
        ),
        pytest.param(
            project(
                f"upstreams: [{UPSTREAM}, {{id: s, endpoint: 'wss://h', evm: {{chainId: 1}},"
                " shadow: {enabled: true}}]"
            ),
            "projects[0].upstreams: `s`: a shadow is called: give its http endpoint, not ws",
            id="shadow by ws",
        ),
        pytest.param(
            project(
                "networks: [{architecture: jsonrpc, id: hive}]\n"
                "  upstreams: [{id: a, endpoint: 'http://h', network: hive},"
                " {id: w, endpoint: 'ws://h', network: hive}]"
            ),
            "projects[0].upstreams: `w`: ws endpoints give heads, and hive has none",
            id="generic network by ws",
        ),
        # names and networks
        pytest.param("{}", "projects: is missing", id="no projects"),
        pytest.param("projects: [{id: a}]", "projects[0].upstreams: is missing", id="no upstreams"),
        pytest.param("projects: [{upstreams: [" + UPSTREAM + "]}]", "projects[0].id: is missing", id="no project id"),
        pytest.param(
            project(f"upstreams: [{UPSTREAM}, {UPSTREAM}]"),
            "projects[0].upstreams[1].id: two upstreams are called `a`",
            id="two ids",
        ),
        pytest.param(
            project(
                "networks: [{evm: {chainId: 1}}, {evm: {chainId: 10}}]\n"
                "  upstreams: [{id: v, endpoint: 'alchemy://k'}, {id: v, endpoint: 'infura://k'}]"
            ),
            "projects[0].upstreams[1].id: two upstreams are called `v-evm-1`",
            id="two ids of several chains",
        ),
        pytest.param(
            f"projects: [{{id: p, upstreams: [{UPSTREAM}]}}, {{id: p, upstreams: [{UPSTREAM}]}}]",
            "projects[1].id: two projects are called `p`",
            id="two projects",
        ),
        pytest.param(
            project(f"networks: [{{evm: {{chainId: 1}}}}, {{evm: {{chainId: 1}}}}]\n  upstreams: [{UPSTREAM}]"),
            "projects[0].networks[1]: network evm:1 is listed twice",
            id="two networks",
        ),
        pytest.param(
            project(f"networks: [{{evm: {{chainId: 1}}}}, {{evm: {{chainId: 2}}}}]\n  upstreams: [{UPSTREAM}]"),
            "projects[0].networks: network evm:2 has no upstream",
            id="network without upstream",
        ),
        pytest.param(
            upstream("shadow: {enabled: true}"),
            "projects[0].networks: network evm:1 has no primary",
            id="only a shadow",
        ),
        pytest.param(
            upstream("tags: ['tier:fallback']"),
            "projects[0].networks: network evm:1 has no primary",
            id="only fallbacks",
        ),
        pytest.param(
            project("upstreams: [{id: a, network: hive, endpoint: 'http://127.0.0.1:1'}]"),
            f"{U}.network: no network is called `hive`",
            id="network unknown",
        ),
        pytest.param(upstream("network: evm:2"), f"{U}.network: `evm:2` is not evm:1", id="network contradicts"),
        pytest.param(
            project("upstreams: [{endpoint: 'http://127.0.0.1:1'}]"), f"{U}.evm.chainId: is missing", id="chain unknown"
        ),
        pytest.param(
            project("networks: [{architecture: jsonrpc}]\n  upstreams: []"),
            "projects[0].networks[0].id: is missing",
            id="generic id",
        ),
        pytest.param(network("", ", chainId: 2"), f"{N}.evm.chainId: given twice, first on line", id="key twice"),
        # endpoints
        *(
            pytest.param(
                project(f"upstreams: [{{id: a, endpoint: '{url}', evm: {{chainId: 1}}}}]"),
                f"{U}.endpoint: {said}",
                id=f"url {url}",
            )
            for url, said in (
                ("node:8545/x", "is not a URL of scheme"),
                ("ftp://host/", "`ftp` is no shipped vendor"),
                ("http://", "is not a URL: it names no host"),
                ("http://h:99999", "is not a URL: its port"),
                ("http://h/a b", "is not a URL: it has spaces"),
                ("http://h/#x", "has a fragment"),
                ("alchemy://", "the key is missing"),
                ("alchemi://k", "`alchemi` is no shipped vendor, did you mean `alchemy`?"),
                ("quicknode://k", "quicknode has no endpoints that a key alone leads to"),
                ("blastapi://k", "blastapi has no endpoints that a key alone leads to: out of service"),
            )
        ),
        pytest.param(
            project("upstreams: [{id: a, endpoint: 'infura://k', evm: {chainId: 99}}]"),
            f"{U}.endpoint: infura is not known to serve this project's chains (99)",
            id="vendor without chain",
        ),
        pytest.param(
            project(f"upstreams: [{UPSTREAM}]\n  providers: [{{vendor: infura}}]"),
            "projects[0].providers[0].settings.apiKey: is missing",
            id="provider without key",
        ),
        pytest.param(
            project(f"upstreams: [{UPSTREAM}]\n  providers: [{{vendor: envio, settings: {{apiKey: k}}}}]"),
            "projects[0].providers[0].vendor: `envio` is no shipped vendor",
            id="provider unknown",
        ),
        # YAML 1.1 traps
        pytest.param(
            network("", "").replace("chainId: 1}", "chainId: '1'}", 1),
            f"{N}.evm.chainId: expected a whole number",
            id="text chain",
        ),
        pytest.param(
            network("", "").replace("chainId: 1}", "chainId: 010}", 1),
            f"{N}.evm.chainId: 010 has a leading zero",
            id="octal",
        ),
        pytest.param(
            network("", "").replace("chainId: 1}", "chainId: 1:30}", 1),
            f"{N}.evm.chainId: expected a whole number",
            id="base 60",
        ),
        pytest.param(
            network("", "").replace("chainId: 1}", "chainId: 0}", 1), f"{N}.evm.chainId: 0 is below 1", id="chain 0"
        ),
        pytest.param(
            upstream("account: true"), f"{U}.account: expected text, found the boolean", id="boolean for text"
        ),
        pytest.param(
            upstream("tags: fallback"), f"{U}.tags: expected a list of text, found 'fallback'", id="text for list"
        ),
        pytest.param(
            upstream("evm2: &x {}").replace("evm2: &x {}", "shadow: [1]"),
            f"{U}.shadow: expected a mapping",
            id="list for mapping",
        ),
        pytest.param("a: 1\n---\nb: 2", ": more than one YAML document", id="two documents"),
        pytest.param("a: [1", ": not YAML", id="not YAML"),
        pytest.param("- 1", ": the file must be a mapping", id="list at top"),
        pytest.param("", ": the file is empty", id="empty"),
        pytest.param("a: &x [*x]", "a[0]: an alias that contains itself", id="endless alias"),
        pytest.param("? [1]\n: 2", ": a key must be text", id="odd key"),
        pytest.param('{"a\\ud800": 1}', ": half of a character", id="half a character in a key"),
        pytest.param('{"projects": "\\udc00"}', "projects: half of a character", id="half a character"),
        # variables
        pytest.param(
            project("upstreams: [{endpoint: $NOT_SET}]"),
            f"{U}.endpoint: environment variable NOT_SET is not set",
            id="not set",
        ),
        pytest.param(
            project("upstreams: [{endpoint: '${A:-b}'}]"), f"{U}.endpoint: `${{A:-b}}` is not the name", id="not a name"
        ),
        # our own settings
        pytest.param(
            project(more="gnomon: {proxy: {workers: 2}}"),
            "gnomon.proxy.workers: several workers come later",
            id="workers",
        ),
        pytest.param(
            project(more="gnomon: {proxy: {workers: 0}}"), "gnomon.proxy.workers: 0 is below 1", id="no workers"
        ),
        pytest.param(
            project(more="gnomon: {proxy: {websockets: true}}"),
            "gnomon.proxy.websockets: WebSockets for clients come later",
            id="websockets",
        ),
        pytest.param(
            project(more="gnomon: {proxy: {port: 70000}}"), "gnomon.proxy.port: 70000 is above 65535", id="port"
        ),
        pytest.param(project(more="gnomon: {proxy: {tls: {cert: a}}}"), "gnomon.proxy.tls.key: is missing", id="tls"),
        pytest.param(
            project(more="gnomon: {proxy: {limits: {maxBatch: 0}}}"),
            "gnomon.proxy.limits.maxBatch: 0 is below 1",
            id="limit 0",
        ),
        pytest.param(
            project(more="gnomon: {alerts: {proxies: ['http://h:4000', 'h:4000']}}"),
            "gnomon.alerts.proxies[1]: expected http://HOST:PORT or https://HOST:PORT",
            id="proxies of alerts",
        ),
        pytest.param(
            project(more="gnomon: {clickhouse: {url: 'tcp://h:9000'}}"),
            "gnomon.clickhouse.url: is not a URL",
            id="clickhouse url",
        ),
        pytest.param(
            project(more="gnomon: {clickhouse: {url: 'http://u:p@h:8123'}}"),
            "gnomon.clickhouse.url: holds a user or password",
            id="ch password",
        ),
        pytest.param(
            project(more="gnomon: {clickhouse: {user: a}}"),
            "gnomon.clickhouse: `user` and `passwordFile` belong",
            id="ch user",
        ),
        pytest.param(
            project(more="gnomon: {events: {kafka: {bootstrapServers: 'h:1', security: {protocol: SASL_SSL}}}}"),
            "gnomon.events.kafka.security.user: is missing, protocol SASL_SSL needs it",
            id="kafka user",
        ),
        pytest.param(
            project(
                more="gnomon: {events: {kafka: {bootstrapServers: 'h:1', security: {user: u, password: p, "
                "passwordFile: f}}}}"
            ),
            "gnomon.events.kafka.security.password: is given beside passwordFile",
            id="kafka two passwords",
        ),
        pytest.param(
            project(more="gnomon: {events: {log: {maxBytes: 1MiB}}}"),
            "gnomon.events.log.maxBytes: 1048576 bytes hold less",
            id="log too small",
        ),
        pytest.param(
            project(more="gnomon: {events: {kafka: {}}}"),
            "gnomon.events.kafka.bootstrapServers: is missing",
            id="kafka",
        ),
        pytest.param(
            project(more="gnomon: {pricing: {accounts: {x: {upstreams: [zz]}}}}"),
            "gnomon.pricing.accounts.x.upstreams[0]: no upstream is called `zz`",
            id="account of nobody",
        ),
        pytest.param(
            project(more="gnomon: {pricing: {accounts: {x: {monthlyBudgetUsd: -1}}}}"),
            "gnomon.pricing.accounts.x.monthlyBudgetUsd: '-1' is not an amount",
            id="budget below 0",
        ),
        pytest.param(
            project(more="gnomon: {pricing: {accounts: {x: {monthlyBudgetUsd: 1e400}}}}"),
            "gnomon.pricing.accounts.x.monthlyBudgetUsd: '1e400' cannot be kept: at most",
            id="budget that no column holds",
        ),
        pytest.param(
            project(more="gnomon: {pricing: {accounts: {x: {monthlyBudgetUsd: 0.0000000000001}}}}"),
            "gnomon.pricing.accounts.x.monthlyBudgetUsd: '0.0000000000001' cannot be kept",
            id="budget finer than any price",
        ),
        pytest.param(
            project(more="gnomon: {api: {limits: {queryTimeout: 31s}}}"),
            "gnomon.api.limits.queryTimeout: must be 1s to 30s",
            id="questions longer than readers may ask",
        ),
        pytest.param(
            project(more="gnomon: {api: {sql: {timeout: 31s}}}"),
            "gnomon.api.sql.timeout: must be 1s to 30s",
            id="statements longer than readers may ask",
        ),
        pytest.param(
            project(more="gnomon: {api: {sql: {memoryBytes: 1GiB}}}"),
            "gnomon.api.sql.memoryBytes: must be at most 1000000000 bytes",
            id="statements larger than readers' may be",
        ),
        pytest.param(
            project(more="gnomon: {api: {limits: {queryTimeout: 999ms}}}"),
            "gnomon.api.limits.queryTimeout: must be 1s to 30s",
            id="questions without time",
        ),
        pytest.param(
            project(more="gnomon: {api: {tokens: [{name: t, sha256File: a}, {name: t, sha256File: b}]}}"),
            "gnomon.api.tokens[1].name: two tokens are called `t`",
            id="two tokens of one name",
        ),
        pytest.param(
            project(more="gnomon: {api: {tls: {cert: none.pem, key: none.pem}}}"),
            "gnomon.api.tls.cert: cannot read none.pem",
            id="certificate of the API that is not there",
        ),
        pytest.param(
            project(more="gnomon: {retention: {rows: 0s}}"),
            "gnomon.retention.rows: 0s must be longer",
            id="retention 0",
        ),
    ],
)
def test_a_slip_is_named_with_its_place(text: str, expected: str) -> None:
    """Each slip gives a problem that begins with its path and says what is wrong and what would be right."""
    found = problems(text)

    assert any(one.startswith(expected) for one in found), found


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param(project(more="gnomon: {proxy: {host: 0.0.0.0}}"), "gnomon.proxy.host", id="open to all"),
        pytest.param(
            project(more="server: {httpHostV4: 192.0.2.1}"), "server.httpHostV4", id="open to all, eRPC's key"
        ),
        pytest.param(project(more="gnomon: {api: {host: '::'}}"), "gnomon.api.host", id="API without tokens"),
        *(
            pytest.param(
                project(f"auth: {{strategies: [{{type: {kind}, {kind}: {{x: 1}}}}]}}\n  upstreams: [{UPSTREAM}]"),
                "projects[0].auth.strategies[0].type",
                id=f"auth {kind}",
            )
            for kind in ("jwt", "siwe", "database")
        ),
        pytest.param(
            project(
                "auth: {strategies: [{type: secret, secret: {value: x}, allowMethods: [eth_call]}]}\n"
                f"  upstreams: [{UPSTREAM}]"
            ),
            "projects[0].auth.strategies[0].allowMethods",
            id="methods by client",
        ),
        pytest.param(
            project(more="rateLimiters: {store: {driver: redis}, budgets: []}"), "rateLimiters.store", id="redis limits"
        ),
        pytest.param(upstream("rateLimitCountMode: credit"), f"{U}.rateLimitCountMode", id="limits by credits"),
        pytest.param(upstream("jsonRpc: {proxyPool: p}"), f"{U}.jsonRpc.proxyPool", id="outbound proxy"),
        pytest.param(project(more="proxyPools: [{id: a, urls: [x]}]"), "proxyPools", id="outbound proxies"),
        pytest.param(
            project(more="server: {tls: {enabled: false, caFile: c}}"),
            "server.tls.caFile",
            id="client certificates",
        ),
        pytest.param(
            project(more="server: {trustedIPHeaders: [X-Real-IP]}"),
            "server.trustedIPHeaders",
            id="other address header",
        ),
    ],
)
def test_what_guards_money_or_access_is_never_ignored(text: str, path: str) -> None:
    """A guard that is not in force refuses the file; `--allow-insecure` turns that alone into a warning."""
    refused = problems(text)

    assert any(one.startswith(f"{path}: ") for one in refused), refused
    assert all("--allow-insecure" in one for one in refused), refused
    warned = loads(text, environment={}, allow_insecure=True).warnings
    assert any(path in warning and "--allow-insecure" in warning for warning in warned)


@pytest.mark.parametrize(
    "more",
    [
        "rateLimiters: {store: {driver: memory}, budgets: []}",
        "server: {tls: {enabled: false}, trustedIPHeaders: []}",
        "proxyPools: []",
        "gnomon: {proxy: {websockets: false, host: localhost}, api: {host: '::1'}}",
    ],
)
def test_a_guard_that_guards_nothing_is_no_problem(more: str) -> None:
    """What is switched off in the file is not missed."""
    assert problems(project(more=more)) == []


def test_all_problems_are_told_at_once_with_their_lines() -> None:
    """Independent slips are all in one message, in the order of the file."""
    text = (
        "projects:\n- id: main\n  upstreams:\n  - {id: a, endpoint: 'x', evm: {chainId: x}}\n  colour: red\nextra: 1\n"
    )
    with pytest.raises(ConfigError) as caught:
        loads(text, name="f.yaml", environment={})

    assert [problem.line for problem in caught.value.problems] == [4, 4, 5, 6]
    assert str(caught.value).splitlines()[0] == "f.yaml: 4 problems"
    assert caught.value.exit_status == 2


def test_one_slip_is_one_problem() -> None:
    """A wrong value is not also called missing."""
    assert len(problems(network("").replace("chainId: 1}", "chainId: one}", 1))) == 1
    assert len(problems(upstream("failsafe: [{timeout: {duration: 5}}]"))) == 1


def test_secrets_are_not_repeated_in_problems() -> None:
    """A problem with an endpoint does not print the endpoint."""
    found = "\n".join(
        problems(project("upstreams: [{id: a, endpoint: 'http://user:hunter2@h:0/k3y', evm: {chainId: 1}}]"))
    )

    assert found
    assert "hunter2" not in found
    assert "k3y" not in found


def test_aliases_cannot_blow_up() -> None:
    """A file that grows a billion-fold by aliases is refused at once."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]

    assert any("values once aliases are followed" in one for one in problems("\n".join(lines)))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        pytest.param("a.ts", b"export default {}", "TypeScript", id="typescript"),
        pytest.param("a.yaml", b"\xff\xfe", "is not UTF-8", id="not UTF-8"),
    ],
)
def test_files_that_cannot_be_read_say_why(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    """A file of another kind is one clear problem."""
    (tmp_path / name).write_bytes(content)

    with pytest.raises(ConfigError, match=said):
        load(tmp_path / name)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """A path of a folder is an error of the configuration, not a traceback."""
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path)


@pytest.mark.parametrize("value", ["${NOT_SET}", "'${NOT_SET}'", "$NOT_SET"])
def test_an_unset_variable_is_one_problem(value: str) -> None:
    """Whatever stands where it should: nothing is read as if it were empty or left out."""
    found = problems(project(f"upstreams: [{{id: a, endpoint: 'http://h', evm: {{chainId: {value}}}}}]"))

    assert found == [f"{U}.evm.chainId: environment variable NOT_SET is not set"]
