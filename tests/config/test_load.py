"""Files load as they are meant: shapes, inheritance, expansion, defaults."""

import hashlib
from pathlib import Path

import msgspec
import pytest

from gnomon.config.errors import ConfigError
from gnomon.config.load import load, loads
from gnomon.config.model import Failsafe, Quantile, Settings, Upstream

FIXTURES = Path(__file__).parent / "fixtures"
ENVIRONMENT = {"PIPELINE_SECRET": "s3cret", "ALCHEMY_KEY": "alchemy-key-1", "CANDIDATE_PASSWORD": "p:w"}
ONE = "{id: a, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}"


def read(name: str, **options: bool) -> Settings:
    return load(FIXTURES / name, environment=ENVIRONMENT, **options)


def text(body: str, **variables: str) -> Settings:
    return loads(body, environment=variables)


def upstream(settings: Settings, name: str) -> Upstream:
    return next(u for project in settings.projects for u in project.upstreams if u.id == name)


def with_upstreams(*upstreams: str, networks: str = "", defaults: str = "", more: str = "") -> Settings:
    lines = ["projects:", "- id: main"]
    lines += [f"  networks: {networks}"] if networks else []
    lines += [f"  upstreamDefaults: {defaults}"] if defaults else []
    lines += ["  upstreams:", *(f"  - {u}" for u in upstreams)]
    return text("\n".join([*lines, more]))


@pytest.mark.parametrize("name", sorted(file.name for file in FIXTURES.iterdir() if file.is_file()))
def test_every_fixture_loads(name: str) -> None:
    """Every example file can be used, without `--allow-insecure`."""
    assert read(name).projects


def test_a_team_file_means_what_it_says() -> None:
    """One file with every common part of eRPC gives the settings a reader of the file expects."""
    settings = read("team.yaml")
    project = settings.projects[0]
    mainnet, optimism = project.networks

    assert (mainnet.id, mainnet.alias, mainnet.short_circuit_future_blocks) == ("evm:1", "mainnet", True)
    assert (mainnet.empty_result_confidence, mainnet.fallback_finality_depth) == ("finalizedBlock", 256)
    assert mainnet.max_retry_seconds == 45.0
    assert mainnet.directive_defaults == {"retryEmpty": True}
    assert mainnet.failsafe[0].match_finality == ("unfinalized", "realtime")
    assert mainnet.failsafe[1].timeout == Quantile(quantile=0.95, min_seconds=0.5, max_seconds=6.0, base_seconds=1.0)
    assert mainnet.empty_result_accept == ("eth_getLogs", "eth_call")
    assert optimism.short_circuit_future_blocks is False
    assert optimism.selection_mode == "ordered"
    assert optimism.served_tip_enabled_for == ("latest",)
    assert optimism.failsafe == ()
    assert [u.id for u in project.upstreams] == ["own-1", "own-10", "paid-evm-1", "paid-evm-10", "candidate"]
    assert [u.tier for u in project.upstreams] == ["primary", "primary", "fallback", "fallback", "shadow"]
    assert project.secrets[0].sha256 == hashlib.sha256(b"s3cret").hexdigest()
    assert project.access[0].cidrs == ("192.0.2.7/32", "10.1.0.0/16")
    assert project.cors is not None
    assert project.cors.max_age_seconds == 600
    assert settings.gnomon.proxy.port == 4100
    assert settings.gnomon.events.log.max_bytes == 10 << 30
    assert settings.gnomon.pricing.accounts[0].monthly_budget_usd == "250"
    assert settings.gnomon.retention.rows_seconds == 30 * 86400


def test_parts_without_effect_are_named() -> None:
    """Each part of eRPC that has no effect is one warning with its path."""
    warned = "\n".join(read("team.yaml").warnings)

    for path in (
        "metrics: ignored",
        "database: ignored",
        "server.enableGzip: ignored",
        "projects[0].networks[1].selectionPolicy.evalInterval: ignored",
        "projects[0].networkDefaults.directiveDefaults.enforceHighestBlock: ignored",
        "projects[0].upstreamDefaults.jsonRpc.supportsBatch: ignored",
    ):
        assert path in warned


def test_upstreams_inherit_key_by_key() -> None:
    """A value of the defaults holds where the upstream has none; an explicit false wins; lists replace as a whole."""
    settings = read("team.yaml")

    assert upstream(settings, "own-1").skip_when_syncing is True
    assert upstream(settings, "own-10").skip_when_syncing is False
    assert upstream(settings, "own-1").poll_interval_seconds == 3.0
    assert upstream(settings, "own-1").failsafe[0].timeout is None
    assert upstream(settings, "paid-evm-1").failsafe == (Failsafe(timeout=10.0),)
    assert upstream(settings, "paid-evm-1").headers == {"X-Team": "indexer"}


def test_a_breaker_of_the_upstream_covers_each_policy() -> None:
    """`breaker` stands in each failsafe entry, and in one for all methods if none is for all."""
    policies = upstream(read("team.yaml"), "own-10").failsafe

    assert len(policies) == 1
    assert policies[0].timeout == 10.0
    assert policies[0].breaker is not None
    assert (policies[0].breaker.threshold, policies[0].breaker.open_for_seconds) == (3, 10.0)


def test_one_entry_for_each_pattern() -> None:
    """`a|b` is two entries with the same policies, in their place."""
    more = ", failsafe: [{matchMethod: 'eth_call | trace_*', timeout: {duration: 1s}}, {timeout: {duration: 2s}}]"
    policies = upstream(with_upstreams(ONE.replace("}}", "}" + more + "}")), "a").failsafe

    assert [(p.match_method, p.timeout) for p in policies] == [("eth_call", 1.0), ("trace_*", 1.0), ("*", 2.0)]


def test_a_breaker_without_failsafe_is_for_all_methods() -> None:
    """With no failsafe entry the breaker makes one."""
    policies = upstream(with_upstreams(ONE.replace("}}", "}, breaker: {}}")), "a").failsafe

    assert [(p.match_method, p.breaker.threshold if p.breaker else None) for p in policies] == [("*", 3)]


def test_secrets_of_an_endpoint_are_sent_and_not_shown() -> None:
    """User and password become a header; neither they nor a key are in what is displayed."""
    settings = read("team.yaml")
    candidate, paid = upstream(settings, "candidate"), upstream(settings, "paid-evm-10")

    assert candidate.endpoint == "https://rpc.example.net/eth"
    assert candidate.headers["Authorization"] == "Basic cmVhZGVyOnA6dw=="
    assert candidate.display_endpoint == "https://***@rpc.example.net/eth"
    assert paid.endpoint == "https://opt-mainnet.g.alchemy.com/v2/alchemy-key-1"
    assert paid.display_endpoint == "https://opt-mainnet.g.alchemy.com/v2/***"


def test_older_forms_are_read() -> None:
    """Single failsafe objects, flat quantiles, `group` and recent blocks mean what their newer forms mean."""
    settings = read("older.yaml")
    policy = settings.projects[0].networks[0].failsafe[0]
    a, b = settings.projects[0].upstreams

    assert policy.timeout == Quantile(quantile=0.99, min_seconds=0.2, max_seconds=10.0, base_seconds=5.0)
    assert policy.hedge is not None
    assert policy.hedge.delay == Quantile(quantile=0.95, min_seconds=0.05, max_seconds=2.0, base_seconds=0.1)
    assert policy.retry is not None
    assert policy.retry.empty_result_accept == ("eth_call",)
    assert a.lower is not None
    assert a.lower.latest_minus == 128
    assert (b.tier, b.tags, b.vendor, b.chain_id) == ("fallback", ("tier:fallback",), "alchemy", 42161)
    assert b.poll_interval_seconds == 60.0


def test_providers_become_upstreams() -> None:
    """A provider is one upstream for each chain of the project, with its overrides."""
    settings = read("providers.yaml")
    found = {u.id: u for u in settings.projects[0].upstreams}

    assert list(found) == ["own-eth", "own-base", "infura-evm:1", "infura-evm:8453", "d/1"]
    assert found["infura-evm:8453"].endpoint == "https://base-mainnet.infura.io/v3/infura-key-1"
    assert found["infura-evm:8453"].ignore_methods == ("debug_*",)
    assert found["infura-evm:1"].tier == "fallback"
    assert found["infura-evm:1"].credit_units == {"*": "80"}
    assert found["d/1"].endpoint == "https://lb.drpc.org/ogrpc?network=ethereum&dkey=drpc-key-1"
    assert found["d/1"].display_endpoint == "https://lb.drpc.org/ogrpc?network=ethereum&dkey=***"
    assert (found["d/1"].tier, found["d/1"].vendor) == ("shadow", "drpc")


def test_a_generic_network_loads_from_json() -> None:
    """JSON is YAML; a network of architecture jsonrpc has its own id and no chain."""
    project = read("hive.json").projects[0]

    assert [(n.id, n.architecture, n.chain_id) for n in project.networks] == [("hive", "jsonrpc", None)]
    assert [(u.network, u.chain_id, u.tier) for u in project.upstreams] == [
        ("hive", None, "primary"),
        ("hive", None, "shadow"),
    ]


def test_networks_come_from_upstreams_where_none_is_listed() -> None:
    """As in eRPC, an upstream's chain is a network; the id of an upstream defaults to its host."""
    settings = read("smallest.yaml")

    assert [n.id for n in settings.projects[0].networks] == ["evm:1"]
    assert settings.projects[0].upstreams[0].id == "127.0.0.1:8545"
    assert settings.warnings == ()


def test_a_network_that_is_not_listed_is_made_with_a_warning() -> None:
    """Where networks are listed, one more chain may be a slip: it is served, and named."""
    second = "{id: b, endpoint: 'http://127.0.0.1:2', evm: {chainId: 2}}"
    settings = with_upstreams(ONE, second, networks="[{architecture: evm, evm: {chainId: 1}}]")

    assert [n.id for n in settings.projects[0].networks] == ["evm:1", "evm:2"]
    assert any("evm:2 is not listed; made from upstream `b`" in warning for warning in settings.warnings)


@pytest.mark.parametrize(
    ("default", "own", "expected"),
    [
        pytest.param("", "", False, id="neither"),
        pytest.param("true", "", True, id="inherited"),
        pytest.param("true", "false", False, id="explicit false wins"),
        pytest.param("false", "true", True, id="explicit true wins"),
        pytest.param("", "true", True, id="own only"),
        pytest.param("false", "", False, id="inherited false"),
    ],
)
def test_short_circuit_is_inherited_unless_said_otherwise(default: str, own: str, expected: bool) -> None:
    """Seed 002's truth table of `networkDefaults.evm.shortCircuitFutureBlocks`."""
    defaults = f"  networkDefaults: {{evm: {{shortCircuitFutureBlocks: {default}}}}}\n" if default else ""
    switch = f", shortCircuitFutureBlocks: {own}" if own else ""
    body = f"projects:\n- id: main\n{defaults}  networks: [{{evm: {{chainId: 1{switch}}}}}]\n  upstreams: [{ONE}]\n"

    assert text(body).projects[0].networks[0].short_circuit_future_blocks is expected


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        pytest.param("", 2.0, id="primary"),
        pytest.param(", tags: ['tier:fallback']", 60.0, id="fallback"),
        pytest.param(", shadow: {enabled: true}", 2.0, id="shadow"),
    ],
)
def test_heads_are_polled_by_tier(more: str, seconds: float) -> None:
    """Without an interval primaries and shadows are polled each 2 s; fallbacks, whose polls cost money, each 60 s."""
    own = f"{{id: b, endpoint: 'http://127.0.0.1:2', evm: {{chainId: 1}}{more}}}"

    assert upstream(with_upstreams(ONE, own), "b").poll_interval_seconds == seconds


@pytest.mark.parametrize(
    ("evm", "expected"),
    [
        pytest.param("nodeType: full", 128, id="full"),
        pytest.param("nodeType: archive", None, id="archive"),
        pytest.param("nodeType: full, maxAvailableRecentBlocks: 64", 64, id="said otherwise"),
        pytest.param("nodeType: full, blockAvailability: {upper: {exactBlock: 5}}", None, id="bounds said"),
    ],
)
def test_a_full_node_has_recent_blocks(evm: str, expected: int | None) -> None:
    """As in eRPC: 128 behind the head, unless the file says what it has."""
    own = f"{{id: a, endpoint: 'http://127.0.0.1:1', evm: {{chainId: 1, {evm}}}}}"
    lower = upstream(with_upstreams(own), "a").lower

    assert (lower.latest_minus if lower is not None else None) == expected


@pytest.mark.parametrize(("said", "expected"), [("archive", True), ("full", False), ("unknown", None), ("", None)])
def test_an_upstream_may_say_whether_it_has_an_archive(said: str, expected: bool | None) -> None:
    """Prices may hang on it; what is not said is not known."""
    own = f"{{id: a, endpoint: 'http://127.0.0.1:1', evm: {{chainId: 1{f', nodeType: {said}' if said else ''}}}}}"

    assert upstream(with_upstreams(own), "a").has_archive is expected


@pytest.mark.parametrize(
    ("endpoint", "vendor"),
    [
        ("http://127.0.0.1:8545", ""),
        ("https://eth-mainnet.g.alchemy.com/v2/k", "alchemy"),
        ("https://notalchemy.com/v2/k", ""),
        ("https://abc.quiknode.pro/k", "quicknode"),
        ("https://ethereum-mainnet.core.chainstack.com/k", "chainstack"),
        ("llama://k", "llamarpc"),
        ("evm+infura://k", "infura"),
    ],
)
def test_the_vendor_is_known_by_scheme_or_host(endpoint: str, vendor: str) -> None:
    """A vendor need not be named where its endpoint tells; a host that merely looks alike does not."""
    assert upstream(with_upstreams(f"{{id: a, endpoint: '{endpoint}', evm: {{chainId: 1}}}}"), "a").vendor == vendor


def test_a_named_vendor_wins() -> None:
    """`vendor` says who is billed, whatever the host; both of its names work."""
    for name in ("vendor", "vendorName"):
        own = f"{{id: a, endpoint: 'https://eth.drpc.org/x', {name}: Alchemy, evm: {{chainId: 1}}}}"

        assert upstream(with_upstreams(own), "a").vendor == "alchemy"


@pytest.mark.parametrize("word", ["on", "off", "true", "false", "'off'", "yes", "No"])
def test_switches_accept_words(word: str) -> None:
    """`routing: {probe: off}` works however YAML reads the word."""
    own = ONE.replace("}}", f"}}, routing: {{probe: {word}}}}}")

    assert upstream(with_upstreams(own), "a").probe is (word.strip("'").lower() in ("on", "true", "yes"))


def test_variables_are_put_in_after_parsing() -> None:
    """A value with YAML's own characters stays one value, types are still told, and `$$` is a dollar sign."""
    body = """projects:
    - id: $NAME
      upstreams: [{id: "p$$x", endpoint: "http://127.0.0.1:${PORT}", evm: {chainId: "${CHAIN}"}}]"""
    settings = text(body, NAME="a: [b", PORT="81", CHAIN="5")

    assert settings.projects[0].id == "a: [b"
    assert settings.projects[0].upstreams[0].id == "p$x"
    assert settings.projects[0].upstreams[0].endpoint == "http://127.0.0.1:81"
    assert settings.projects[0].networks[0].id == "evm:5"


def test_escapes_of_json_are_read() -> None:
    """A character beyond the first plane, as JSON escapes it in two parts, is one character."""
    body = (
        '{"projects": [{"id": "\\ud83d\\ude00", "upstreams": [{"endpoint": "http:\\/\\/h", "evm": {"chainId": 1}}]}]}'
    )

    assert text(body).projects[0].id == "\U0001f600"


def test_the_hash_ignores_secrets_and_follows_settings() -> None:
    """Another key at the same place is the same configuration; another timeout is not."""
    body = "projects: [{id: main, upstreams: [{id: a, endpoint: 'alchemy://KEY', evm: {chainId: 1}, MORE}]}]"
    one = text(body.replace("MORE", ""))
    rotated = text(body.replace("MORE", "").replace("KEY", "OTHER"))
    slower = text(body.replace("MORE", "failsafe: {timeout: {duration: 9s}}"))

    assert one.config_hash == rotated.config_hash
    assert one.config_hash != slower.config_hash
    assert len(one.config_hash) == 16


def test_settings_hold_no_client_secret() -> None:
    """Of a client's secret only the hash is kept."""
    assert b"s3cret" not in msgspec.json.encode(read("team.yaml"))


def test_secrets_come_from_files_and_hashes(tmp_path: Path) -> None:
    """`valueFile` is looked up beside the configuration, and its line end is no part of the secret."""
    (tmp_path / "token").write_text("abc\n")
    digest = hashlib.sha256(b"abc").hexdigest()
    file = tmp_path / "gnomon.yaml"
    for given in ("valueFile: token", f"sha256: {digest.upper()}", "value: abc"):
        file.write_text(
            "projects:\n- id: main\n  auth: {strategies: [{type: secret, secret: {id: me, " + given + "}}]}\n"
            f"  upstreams: [{ONE}]\n"
        )

        assert [(s.id, s.sha256) for s in load(file, environment={}).projects[0].secrets] == [("me", digest)]


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    """The first thing a newcomer meets tells what to write, and what it tells can be loaded."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "gnomon.yaml")

    message = str(caught.value)
    assert "gnomon config validate" in message
    example = "\n".join(line[4:] for line in message.splitlines() if line.startswith("    "))
    assert text(example).projects[0].upstreams[1].tier == "shadow"


def test_an_account_bills_the_upstreams_that_it_lists() -> None:
    """Beside those that name it; one that names another account is a contradiction."""
    other = ONE.replace("id: a", "id: b").replace("{chainId", "{chainId").replace("}}", "}, account: own}")
    settings = with_upstreams(ONE, other, more="gnomon: {pricing: {accounts: {acme: {upstreams: [a]}}}}")

    assert [upstream(settings, name).account for name in "ab"] == ["acme", "own"]
    with pytest.raises(ConfigError, match="`b` names the account `own` itself"):
        with_upstreams(ONE, other, more="gnomon: {pricing: {accounts: {acme: {upstreams: [a, b]}}}}")


@pytest.mark.parametrize("value", ["${PORT}", "'${PORT}'", '"${PORT}"', "$PORT"])
def test_variables_stand_in_flow_style_too(value: str) -> None:
    """eRPC puts variables in before it parses, so `{chainId: ${ID}}` is written there; it means the same here."""
    settings = text(f"projects: [{{id: p, upstreams: [{{endpoint: http://h, evm: {{chainId: {value}}}}}]}}]", PORT="12")

    assert settings.projects[0].networks[0].id == "evm:12"


def test_a_variable_adds_no_structure() -> None:
    """Braces, commas and colons of a value stay in it, in either style."""
    settings = text("projects: [{id: ${ID}, upstreams: [{endpoint: http://h, evm: {chainId: 1}}]}]", ID="a, b: {c}")

    assert settings.projects[0].id == "a, b: {c}"
