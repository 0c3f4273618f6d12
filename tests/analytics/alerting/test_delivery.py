"""Delivery over real connections to receivers that check what they get."""

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from analytics.alerting.delivery import Delivery, stop_all
from analytics.alerting.evaluate import Change
from analytics.alerting.history import Parcel, Report
from analytics.alerting.messages import message
from analytics.alerting.post import Answer, post
from analytics.alerting.rules import Rule
from gnomon.config.receivers import Receiver
from tests.analytics.alerting.fakes import FakeReceiver, serving, until
from tests.analytics.alerting.schemas import check_alertmanager, check_pagerduty, check_slack, check_webhook

NOW = datetime(2026, 12, 1, tzinfo=UTC)
RULE = Rule("Spend", "SELECT 1", 5.0, severity="page", runbook="look", summary="{value} USD")


def parcel(receiver: str, state: str = "firing", subject: str = "acme") -> Parcel:
    change = Change(NOW, "Spend", "resolved" if state == "resolved" else "firing", subject, 6.5, 5.0, "page", NOW)
    return Parcel(NOW, receiver, message(change, RULE))


@pytest.fixture
def started() -> Iterator[Callable[..., Delivery]]:
    """Make deliveries that stop with the test."""
    made: list[Delivery] = []

    def start(receiver: Receiver, report: Callable[[Report], None] = lambda r: None, **more: Any) -> Delivery:
        made.append(Delivery(receiver, report, **more))
        made[-1].start()
        return made[-1]

    yield start
    stop_all(made)


@pytest.mark.parametrize(
    ("kind", "check", "path"),
    [
        ("webhook", check_webhook, "/hook"),
        ("slack", check_slack, "/hook"),
        ("pagerduty", check_pagerduty, "/hook"),
        ("alertmanager", check_alertmanager, "/hook/api/v2/alerts"),
    ],
)
def test_each_kind_takes_firing_and_resolved(
    kind: Any, check: Callable[[Any], None], path: str, tmp_path: Path, started: Callable[..., Delivery]
) -> None:
    """By a fake that refuses what the real one would refuse; address and key come from files."""
    (tmp_path / "key").write_text("K" * 32 + "\n")
    with serving(FakeReceiver(check)) as fake:
        (tmp_path / "url").write_text(f"{fake.url}/hook\n")
        if kind == "pagerduty":
            receiver = Receiver("r", kind, f"{fake.url}/hook", routing_key_file=str(tmp_path / "key"))
        else:
            receiver = Receiver("r", kind, url_file=str(tmp_path / "url"))
        delivery = started(receiver)
        delivery.add([parcel("r"), parcel("r", "resolved")])
        until(lambda: len(fake.taken) == 2 or fake.refusals)

        assert fake.refusals == []
        assert [taken[1] for taken in fake.taken] == [path, path]
        assert all(taken[2]["Content-Type"] == "application/json" for taken in fake.taken)


def test_a_dead_receiver_delays_no_other(started: Callable[..., Delivery]) -> None:
    """Nobody listens at one; the other has its message at once."""
    with serving(FakeReceiver()) as fake:
        dead, alive = (
            started(Receiver("dead", "webhook", "http://127.0.0.1:1")),
            started(Receiver("alive", "webhook", fake.url)),
        )
        dead.add([parcel("dead")])
        alive.add([parcel("alive")])
        until(lambda: fake.taken, 2.0)
        until(lambda: dead.n_failed > 0)

        assert dead.n_waiting == 1


def test_a_receiver_that_comes_back_gets_all_in_order(started: Callable[..., Delivery]) -> None:
    """Nothing is lost, a resolve does not overtake its firing, and each try that counts is told."""
    reports: list[Report] = []
    with serving(FakeReceiver()) as fake:
        fake.status = 503
        delivery = started(Receiver("r", "webhook", fake.url), reports.append)
        delivery.add([parcel("r"), parcel("r", "resolved"), parcel("r", subject="b")])
        until(lambda: fake.n_refused)
        fake.status = 200
        until(lambda: len(fake.taken) == 3)

        assert [(b["subject"], b["state"]) for b in fake.bodies] == [
            ("acme", "firing"), ("acme", "resolved"), ("b", "firing"),
        ]  # fmt: skip
        until(lambda: sum(r.is_delivered for r in reports) == 3)
        assert (reports[0].is_delivered, reports[0].error) == (False, "HTTP 503")


def test_a_refused_message_lets_others_pass(started: Callable[..., Delivery]) -> None:
    """One that is too large for the receiver does not silence it."""

    def picky(url: str, body: Any, headers: dict[str, str]) -> Answer:
        return Answer(413, "HTTP 413") if body["subject"] == "acme" else Answer(200)

    delivery = started(Receiver("r", "webhook", "http://127.0.0.1:1"), send=picky)
    delivery.add([parcel("r"), parcel("r", subject="b")])
    until(lambda: delivery.n_delivered == 1)

    assert delivery.n_waiting == 1


def test_a_secret_is_never_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, started: Callable[..., Delivery]
) -> None:
    """Neither an address nor a key, whatever goes wrong."""
    caplog.set_level(logging.DEBUG)
    reports: list[Report] = []
    (tmp_path / "url").write_text("http://127.0.0.1:1/T0KEN")
    delivery = started(Receiver("r", "slack", url_file=str(tmp_path / "url")), reports.append)
    bad = started(Receiver("s", "slack", url_file=str(tmp_path / "none")), reports.append)
    delivery.add([parcel("r")])
    bad.add([parcel("s")])
    until(lambda: delivery.n_failed and bad.n_failed)

    assert "T0KEN" not in caplog.text + str(reports)
    assert "cannot read" in caplog.text


def test_a_token_is_sent(tmp_path: Path, started: Callable[..., Delivery]) -> None:
    """Read at each send, so that a new one counts at once."""
    token = tmp_path / "token"
    token.write_text("one\n")
    with serving(FakeReceiver()) as fake:
        delivery = started(Receiver("r", "webhook", fake.url, token_file=str(token)))
        delivery.add([parcel("r")])
        until(lambda: len(fake.taken) == 1)
        token.write_text("two\n")
        delivery.add([parcel("r", "resolved")])
        until(lambda: len(fake.taken) == 2)

        assert [taken[2]["Authorization"] for taken in fake.taken] == ["Bearer one", "Bearer two"]


def test_alertmanager_is_told_again(monkeypatch: pytest.MonkeyPatch, started: Callable[..., Delivery]) -> None:
    """It forgets in five minutes what it is not told of."""
    monkeypatch.setattr("analytics.alerting.delivery.REFRESH_SECONDS", 0.05)
    with serving(FakeReceiver(check_alertmanager)) as fake:
        delivery = started(Receiver("r", "alertmanager", fake.url))
        delivery.hold([parcel("r").message])
        delivery.add([])
        until(lambda: len(fake.taken) >= 2)

        assert fake.bodies[0][0]["labels"] == fake.bodies[1][0]["labels"]


def test_a_redirect_is_not_followed() -> None:
    """It would turn the POST into a GET, or carry a secret elsewhere."""
    with serving(FakeReceiver()) as fake, serving(FakeReceiver()) as other:
        fake.status, fake.headers = 302, {"Location": other.url}

        assert post(fake.url, {}, {}).status == 302
        assert other.taken == []


@pytest.mark.parametrize(
    ("status", "is_taken", "is_away"),
    [(200, True, False), (202, True, False), (302, False, False), (400, False, False), (404, False, False),
     (408, False, True), (429, False, True), (500, False, True), (503, False, True), (0, False, True)],
)  # fmt: skip
def test_which_answers_may_change(status: int, is_taken: bool, is_away: bool) -> None:
    """An outage and a rate limit pass; a refusal of the message itself is another matter."""
    answer = Answer(status)

    assert (answer.is_taken, answer.is_away) == (is_taken, is_away)


def test_an_address_that_is_none_is_told() -> None:
    """Without its text."""
    assert post("no url T0KEN", {}, {}) == Answer(0, "the address is no URL")


def test_what_another_service_tells_waits(started: Callable[..., Delivery]) -> None:
    """Until this one may tell it; of another rule it may already."""
    allowed = {"Other"}
    with serving(FakeReceiver(check_webhook)) as fake:
        it = started(Receiver("ops", "webhook", fake.url), may_send=lambda rule: rule in allowed)
        change = Change(NOW, "Other", "firing", "x", 6.5, 5.0, "page", NOW)
        it.add([parcel("ops"), Parcel(NOW, "ops", message(change, RULE))])
        until(lambda: len(fake.taken) == 1)
        assert it.n_waiting == 1
        allowed.add("Spend")
        until(lambda: len(fake.taken) == 2)

    assert [body["rule"] for body in fake.bodies] == ["Other", "Spend"]


def test_a_receiver_that_moves_is_tried_there(started: Callable[..., Delivery]) -> None:
    """With what it has not got yet, without waiting for its rest to end."""
    with serving(FakeReceiver(check_webhook)) as fake:
        it = started(Receiver("ops", "webhook", "http://127.0.0.1:1"))
        it.add([parcel("ops")])
        until(lambda: it.n_failed > 1)
        it.replace(Receiver("ops", "webhook", fake.url))
        until(lambda: len(fake.taken) == 1)

    assert it.n_waiting == 0
