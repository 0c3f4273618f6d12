"""What the processors count and say: closed metrics, bounded labels, lines worth reading."""

import http.client
import re
from collections.abc import Iterator

import pytest

from gnomon.config.model import Settings
from gnomon.events.contract import Answer, AnyEvent, Attempt
from ingest.batch import decode
from ingest.health import HealthServer
from ingest.metrics import DEFINITIONS, Metrics
from ingest.rows import Step, rows_of
from ingest.settings import context
from ingest.verdicts import MAX_LINES_PER_BATCH, lines
from tests.ingest.events import primary, records, shadow

CALL = Attempt(upstream="s1", vendor="alchemy", tier="shadow", kind="shadow")
PAIR = ("main", "alchemy", "evm:31337", "s1", "eth_getBlockByNumber")


def step(*events: AnyEvent) -> Step:
    return rows_of(decode(0, records(list(events))), context(Settings()), 0)


@pytest.mark.parametrize(
    ("event", "name", "labels"),
    [
        (shadow(1, attempt=CALL), "gnomon_shadow_identical_total", (*PAIR, "finalized")),
        (shadow(1, attempt=CALL, body=b'"A"', other=b'"a"', tolerate=("value", "hex_case")),
         "gnomon_shadow_identical_total", (*PAIR, "finalized")),
        (shadow(1, attempt=CALL, body=b"1", other=b"22"), "gnomon_shadow_mismatch_total",
         (*PAIR, "finalized", "false", "true")),
        (shadow(1, attempt=CALL, body=b"1", other=b"null"), "gnomon_shadow_mismatch_total",
         (*PAIR, "finalized", "true", "true")),
        (shadow(1, attempt=Attempt(upstream="s1", vendor="alchemy", outcome="timeout", error_class="timeout"),
                shadow=Answer()), "gnomon_shadow_error_total", (*PAIR, "missing:timeout")),
        (shadow(1, attempt=CALL, method="web3_clientVersion", body=b'"a"', other=b'"b"'),
         "gnomon_shadow_skipped_total", (*PAIR[:4], "web3_clientVersion", "incomparable")),
        (shadow(1, attempt=CALL, method="0xdead_made_up"), "gnomon_shadow_identical_total",
         (*PAIR[:4], "_OTHER", "unknown")),
        (primary(1, shadows={"s1": "shed"}), "gnomon_shadow_skipped_total",
         ("main", "", "evm:31337", "s1", "eth_getBlockByNumber", "shed")),
        (primary(1, shadows={"s1": "write"}, method="0xdead_made_up"), "gnomon_shadow_skipped_total",
         ("main", "", "evm:31337", "s1", "_OTHER", "write")),
    ],
)  # fmt: skip
def test_each_outcome_counts_in_one_metric(event: AnyEvent, name: str, labels: tuple[str, ...]) -> None:
    """Unknown methods share a label: a client must not be able to make series."""
    metrics = Metrics()
    metrics.observe(step(event))

    assert metrics.get(name, labels) == 1
    assert sum(line.startswith("gnomon_shadow") for line in metrics.render().splitlines()) == 1


def test_a_mirrored_decision_is_not_skipped() -> None:
    """Its verdict counts."""
    metrics = Metrics()
    metrics.observe(step(primary(1, shadows={"s1": "mirrored"})))

    assert "gnomon_shadow_skipped_total{" not in metrics.render()


def test_the_text_is_an_exposition_with_every_metric() -> None:
    """Name, help and type of each; values escaped."""
    metrics = Metrics()
    metrics.add("gnomon_ingest_dead_letters_total", ('a"b\\c\nd',), 2)
    text = metrics.render()

    assert [d.name for d in DEFINITIONS] == re.findall(r"# TYPE (\S+) (?:counter|gauge)", text)
    assert 'gnomon_ingest_dead_letters_total{reason="a\\"b\\\\c\\nd"} 2\n' in text


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda d: d.name)
def test_names_follow_the_rules(definition: object) -> None:
    """One prefix; counters end in _total; a help that ends as a sentence."""
    name, kind, text = (getattr(definition, key) for key in ("name", "type", "help"))

    assert re.fullmatch(r"gnomon_(shadow|ingest)_[a-z_]+", name)
    assert (kind == "counter") == name.endswith("_total")
    assert text.endswith(".")


def test_a_wrong_label_is_a_mistake_of_ours() -> None:
    """A closed list: a metric that is not in it cannot be counted."""
    with pytest.raises(KeyError):
        Metrics().add("gnomon_made_up_total")


def test_a_mismatch_is_an_error_with_both_answers() -> None:
    """Request, place, masks, and the answers cut to a length."""
    (line,) = lines(
        step(shadow(1, body=b'{"a":1}', other=b'{"a":2,"b":"%s"}' % (b"x" * 5000), ignore_fields=("c",))).verdicts
    )

    assert (line.level, line.event) == ("error", "shadow differs from primary")
    assert line.facts["paths"] == "$.result.a $.result.b"
    assert line.facts["masks"] == "c"
    assert line.facts["params"] == '["0x64",false]'
    assert len(str(line.facts["shadow_answer"])) == 600


def test_a_pair_without_a_verdict_is_a_warning_and_the_rest_is_silent() -> None:
    """Identical, masked and tolerated pairs are nobody's news."""
    (line,) = lines(step(shadow(1, shadow=Answer(), attempt=Attempt(upstream="s1", outcome="timeout"))).verdicts)

    assert (line.level, line.facts["outcome"], line.facts["reason"]) == ("warning", "missing", "timeout")
    assert lines(step(shadow(1)).verdicts) == []


def test_a_burst_is_cut_and_counted() -> None:
    """A broken shadow must not drown the log."""
    shown = lines(step(*(shadow(n, body=b"1", other=b"2") for n in range(MAX_LINES_PER_BATCH + 7))).verdicts)

    assert len(shown) == MAX_LINES_PER_BATCH + 1
    assert shown[-1].facts["n"] == 7


@pytest.fixture
def server() -> Iterator[HealthServer]:
    state = [True]
    server = HealthServer(lambda: (state[0], '{"a":1}'), lambda: "metrics\n")
    server.state = state  # type: ignore[attr-defined]
    server.start()
    yield server
    server.stop()


def get(server: HealthServer, path: str, host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request("GET", path, headers={"Host": host} if host else {})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


def test_health_and_metrics_are_served(server: HealthServer) -> None:
    """200 or 503, with what is wrong; another path says what there is."""
    assert get(server, "/healthz") == (200, b'{"a":1}\n')
    assert get(server, "/metrics") == (200, b"metrics\n")
    assert get(server, "/")[0] == 404
    server.state[0] = False  # type: ignore[attr-defined]
    assert get(server, "/healthz")[0] == 503


@pytest.mark.parametrize(("host", "status"), [("evil.example", 403), ("localhost:1", 200), ("[::1]:9", 200)])
def test_a_foreign_host_is_refused(server: HealthServer, host: str, status: int) -> None:
    """A page in a browser must not read it under another name."""
    assert get(server, "/healthz", host)[0] == status


@pytest.mark.parametrize("host", ["127.0.0.2", "::1"])
def test_another_address_is_served_by_its_own_name(host: str) -> None:
    """IPv6 too; the first line of the service names it so."""
    server = HealthServer(lambda: (True, "{}"), lambda: "metrics\n", host=host)
    server.start()
    try:
        connection = http.client.HTTPConnection(host, server.port, timeout=5)
        connection.request("GET", "/metrics")
        status = connection.getresponse().status
        connection.close()
    finally:
        server.stop()

    assert status == 200
    assert server.url == f"http://{'[::1]' if host == '::1' else host}:{server.port}"


def test_beyond_loopback_any_name_will_do() -> None:
    """There it has names that only the network knows."""
    server = HealthServer(lambda: (True, "{}"), lambda: "metrics\n", host="0.0.0.0")
    server.start()
    try:
        assert get(server, "/metrics", "ingest-1:9464") == (200, b"metrics\n")
    finally:
        server.stop()
