"""The settings in force are printed whole, without a secret, and mean the same when they are loaded again."""

import pytest
import yaml

from gnomon.config.dump import PLACES, dump
from gnomon.config.load import load, loads
from gnomon.config.model import Settings
from tests.config.test_load import ENVIRONMENT, FIXTURES, text
from tests.config.test_shapes import ENVIRONMENT as MORE
from tests.config.test_shapes import LOADED

OWN = """
projects:
- id: main
  rateLimitBudget: b
  auth: {strategies: [{type: secret, rateLimitBudget: b, secret: {value: one}}, {type: secret, secret: {value: two}}]}
  upstreams:
  - {id: a, endpoint: 'https://reader:pw@h.example/eth', evm: {chainId: 1}, breaker: {threshold: 4}}
  - {id: b, endpoint: 'blockdaemon://kEy', evm: {chainId: 1}, failsafe: [{retry: {emptyResultAccept: []}}]}
  - {id: c, endpoint: 'http://c.example', evm: {chainId: 1, nodeType: archive}}
  - {id: d, endpoint: 'http://d.example', evm: {chainId: 1, nodeType: full, maxAvailableRecentBlocks: 64}}
rateLimiters:
  budgets: [{id: b, rules: [{method: 'eth_*', maxCount: 0, period: month, waitTime: 1500us, perIP: true}]}]
server: {trustedIPForwarders: [10.0.0.0/8], maxTimeout: 90s}
gnomon:
  proxy:
    {host: 127.0.0.2, port: 0, shutdown: 0, controlSecretFile: /c,
     limits: {maxConnections: 7, maxInFlightBytes: 1MiB, bodyTimeout: 90ms}}
  api:
    port: 8081
    tokens: [{name: t, role: admin, sha256File: /t}]
    cors: {allowedOrigins: ['https://a.example'], maxAge: 0}
    limits: {requestsPerSecond: 2.5, burst: 7, maxRequestBytes: 2KiB, queries: 3, queryTimeout: 9s, streams: 9,
             shutdown: 0}
    sql: {queries: 3, timeout: 4s, resultRows: 5, resultBytes: 1KiB, readRows: 6, memoryBytes: 64MiB}
  events:
    bodies: none
    log: {segmentBytes: 1MiB, fsync: interval}
    kafka: {bootstrapServers: 'h:9092', security: {protocol: SASL_SSL, user: u, password: hunter2}}
  clickhouse: {url: 'http://127.0.0.1:0', user: u, passwordFile: /p, readerUser: r, readerPasswordFile: /r, cluster: c}
  shadow: {tolerate: {eth_call: [hex_case]}, sampleIdenticalBodies: 0.125}
  pricing: {books: [mine.yaml], accounts: {acme: {upstreams: [b], monthlyBudgetUsd: 12.50, cycleDay: 3}}}
  alerts: {rules: [r.yaml], proxies: ['http://proxy-1:4000'], receivers: [{name: ops, webhook: {url: 'https://hooks.example/T0KEN'}}]}
  retention: {rows: 36h, bodies: 1d, events: 2d, rollups: 1y}
"""


def files() -> dict[str, Settings]:
    """Return the settings of every example that loads, and of one with all of our own keys."""
    names = [*(f for f in FIXTURES.iterdir() if f.is_file()), *(FIXTURES / "erpc" / f"{n}.yaml" for n in LOADED)]
    found = {f"{f.parent.name}/{f.name}": load(f, environment={**ENVIRONMENT, **MORE}) for f in names}
    return {**found, "own": loads(OWN, environment={}, allow_insecure=True)}


@pytest.mark.parametrize("name", sorted(files()))
def test_what_is_printed_means_the_same(name: str) -> None:
    """Loaded again it has the same hash, and printed again it is the same text: only secrets are gone."""
    settings = files()[name]
    printed = dump(settings)
    again = loads(printed, environment={}, allow_insecure=True)

    assert again.config_hash == settings.config_hash
    assert dump(again) == printed


def test_nothing_that_is_printed_is_without_effect() -> None:
    """The printed file has no warnings of its own: what was ignored is gone."""
    again = loads(dump(load(FIXTURES / "team.yaml", environment=ENVIRONMENT)), environment={})

    assert [w for w in again.warnings if "ignored" in w] == []


def test_every_member_has_a_place() -> None:
    """A member of the settings that the tables do not know would be lost; so would a place of a member that is gone."""
    for struct, places in PLACES.items():
        assert set(places) == set(struct.__struct_fields__), struct.__name__


@pytest.mark.parametrize("name", sorted(files()))
def test_no_secret_is_printed(name: str) -> None:
    """Neither keys nor passwords nor hashes of secrets nor header values are in the output."""
    settings = files()[name]
    printed = dump(settings)
    secrets = [*ENVIRONMENT.values(), *MORE.values(), "cmVhZGVyOn", "kEy", "hunter2", "T0KEN", "0123456789abcdef"]
    secrets += [secret.sha256 for project in settings.projects for secret in project.secrets]
    for secret in secrets:
        assert secret not in printed


def test_everything_else_is_printed_with_units() -> None:
    """Each setting is there under the file's own name, durations with their units."""
    settings = load(FIXTURES / "team.yaml", environment=ENVIRONMENT)
    printed = yaml.safe_load(dump(settings))
    project = printed["projects"][0]

    assert project["networks"][0]["failsafe"][1]["retry"]["delay"] == "40ms"
    assert project["networks"][0]["failsafe"][0]["timeout"] == {"duration": "8s"}
    assert project["upstreams"][0]["evm"]["statePollerInterval"] == "3s"
    assert project["upstreams"][0]["evm"]["blockAvailability"]["lower"] == {"latestBlockMinus": 9000}
    assert project["upstreams"][1]["breaker"] == {"threshold": 3, "openFor": "10s"}
    assert project["upstreams"][2]["endpoint"] == "https://eth-mainnet.g.alchemy.com/v2/***"
    assert printed["server"]["maxTimeout"] == "45s"
    assert printed["gnomon"]["proxy"]["port"] == 4100
    assert printed["gnomon"]["retention"]["rollups"] == "1y"
    assert dump(settings).startswith(f"# What is in force; secrets are masked. Configuration {settings.config_hash}.\n")


def test_names_that_are_values_stay_as_they_are() -> None:
    """Methods, headers and budgets keep their own spelling."""
    settings = load(FIXTURES / "team.yaml", environment=ENVIRONMENT)
    upstreams = yaml.safe_load(dump(settings))["projects"][0]["upstreams"]

    assert "eth_getBlockReceipts" in upstreams[4]["shadow"]["ignoreFields"]
    assert upstreams[1]["validators"] == {"eth_getTransactionReceipt": ["blockHash"]}
    assert upstreams[2]["jsonRpc"]["headers"] == {"X-Team": "***"}


def test_receivers_and_kafka_credentials_are_masked() -> None:
    """Webhook addresses hold tokens, and Kafka's security holds passwords; names and protocols stay."""
    settings = text(
        """
projects: [{id: main, upstreams: [{id: a, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}]}]
gnomon:
  events: {kafka: {bootstrapServers: 'h:9092', security: {protocol: SASL_SSL, user: u, password: hunter2}}}
  alerts: {receivers: [{name: ops, webhook: {url: 'https://hooks.example/T0KEN'}}]}
"""
    )
    printed = yaml.safe_load(dump(settings))["gnomon"]

    assert printed["events"]["kafka"]["security"] == {
        "protocol": "SASL_SSL",
        "user": "u",
        "password": "***",
    }
    assert printed["alerts"]["receivers"] == [{"name": "ops", "webhook": {"url": "***"}}]
