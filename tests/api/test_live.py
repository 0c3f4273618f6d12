"""The live stream over sockets: what is told, to whom, for how long, at whose cost."""

import asyncio
import hashlib
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analytics.questions import load
from analytics.store import Result, StoreAway
from api.access import Access, Caller, Token
from api.changes import KINDS, Changes, Mark
from api.live import FORGOTTEN_AFTER_SECONDS, MOVED_AFTER, WINDOW, Live
from api.state import InForce
from tests.api.calling import Api, settings_of
from tests.api.listening import listening
from tests.api.sse import SECONDS, heard

QUESTION = load("stored_since")
AT = datetime(2026, 12, 1, tzinfo=UTC)


class Stored:
    """A ClickHouse whose counts a test sets; it knows how many looks go on at once."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(KINDS, 10)
        self.error: Exception | None = None
        self.asked: list[Mapping[str, object]] = []
        self.n_now = 0
        self.most_at_once = 0
        self.n_waiting = 0

    async def query(self, sql: str, bound: Mapping[str, object]) -> Result:
        assert sql == QUESTION.sql
        self.asked.append(dict(bound))
        self.n_now += 1
        self.most_at_once = max(self.most_at_once, self.n_now)
        try:
            await asyncio.sleep(0.001)
            if self.error is not None:
                raise self.error
            names = tuple(column.name for column in QUESTION.columns)
            return Result(names, ("String", "UInt64", "Nullable(DateTime64(3, 'UTC'))"),
                          [(kind, n, AT) for kind, n in self.counts.items()])  # fmt: skip
        finally:
            self.n_now -= 1


def api(stored: Stored, access: Access | None = None, most: int = 100, **timing: Any) -> Api:
    made = Api(stored, settings_of(), access)
    made.services.live = Live(
        made.services.asking, made.services.metrics, most, **{"poll_seconds": 0.02, "heartbeat_seconds": 0.2, **timing}
    )
    return made


def until(condition: Callable[[], bool], why: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, why()
        time.sleep(0.01)


def counted(made: Api, name: str, *labels: str) -> float:
    return made.services.metrics.get(name, labels)


def begun(made: Api) -> None:
    """Wait until what is stored was counted once, so that more of it is a change."""
    until(lambda: counted(made, "gnomon_api_stream_looks_total", "ok") > 0)


def test_what_is_stored_is_told_by_kind() -> None:
    """First that one listens, then how much is new; nothing of what was there before."""
    stored = Stored()
    made = api(stored)
    with listening(made) as url, heard(url) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-store"
        assert stream.block() == ["retry: 2000"]
        hello = stream.event()
        assert (hello.kind, hello.data) == ("hello", {"kinds": list(KINDS)})
        begun(made)
        stored.counts["requests"] += 3
        first = stream.event()
        stored.counts["alerts"] += 1
        second = stream.event()

    assert (first.kind, first.data) == ("requests", {"n": 3, "newest_at": "2026-12-01T00:00:00.000Z"})
    assert (second.kind, second.data["n"]) == ("alerts", 1)
    assert len({hello.id, first.id, second.id}) == 3


def test_quiet_is_a_comment_now_and_then() -> None:
    """So that both ends, and what lies between, know that the other is there."""
    with listening(api(Stored(), heartbeat_seconds=0.05)) as url, heard(url) as stream:
        stream.event("hello")

        assert [stream.block() for _ in range(3)] == [[":"]] * 3


def test_one_looks_for_all_and_only_while_somebody_listens() -> None:
    """Twenty listeners are one question at a time; without any there is none."""
    stored = Stored()
    made = api(stored)
    with listening(made) as url:
        with ExitStack() as streams:
            for stream in [streams.enter_context(heard(url)) for _ in range(20)]:
                stream.event("hello")
            n_before = len(stored.asked)
            until(lambda: len(stored.asked) >= n_before + 10)
            assert stored.most_at_once == 1
        until(lambda: made.services.live.places.n_taken == 0)
        until(lambda: made.services.live._poller is None)

        assert stored.n_now == 0


def test_who_comes_back_is_told_what_was_new_meanwhile() -> None:
    """Once for each kind, with the sum, also where nobody listened in between."""
    stored = Stored()
    made = api(stored)
    with listening(made) as url:
        with heard(url) as stream, heard(url) as other:
            stream.event("hello")
            other.event("hello")
            begun(made)
            stored.counts["heads"] += 1
            seen = stream.event("heads").id
            for _ in range(3):
                stored.counts["requests"] += 2
                other.event("requests")
        until(lambda: made.services.live.places.n_taken == 0)
        stored.counts["breakers"] += 1
        with heard(url, seen) as stream:
            hello, requests, breakers = stream.event(), stream.event(), stream.event()

    assert (hello.kind, hello.id) == ("hello", seen)
    assert (requests.kind, requests.data["n"]) == ("requests", 6)
    assert (breakers.kind, breakers.data["n"]) == ("breakers", 1)


@pytest.mark.parametrize("last_id", ["", "deadbeef-7", "nonsense"])
def test_a_gap_is_told_as_one(last_id: str) -> None:
    """An id that is not kept, or of another run: all that is shown must be asked for again."""
    stored = Stored()
    made = api(stored)
    made.services.live._changes = Changes("a", kept=2)
    with listening(made) as url:
        if not last_id:  # one that was right, and is too old
            with heard(url) as stream:
                last_id = stream.event("hello").id
                begun(made)
                for _ in range(3):
                    stored.counts["requests"] += 1
                    newest = stream.event("requests").id
        else:
            newest = "a-0"
        with heard(url, last_id) as stream:
            reset = stream.event()
            stored.counts["heads"] += 5
            following = stream.event("heads") if newest != "a-0" else None

    assert (reset.kind, reset.id) == ("reset", newest)
    assert following is None or following.data["n"] == 5


def test_after_a_long_silence_ids_are_of_another_run() -> None:
    """What was new while nobody listened for so long was not counted."""
    clock = [0.0]
    made = api(Stored(), clock=lambda: clock[0])
    with listening(made) as url:
        with heard(url) as stream:
            last_id = stream.event("hello").id
        until(lambda: made.services.live.places.n_taken == 0)
        with heard(url, last_id) as stream:
            soon = stream.event().kind
        until(lambda: made.services.live.places.n_taken == 0)
        clock[0] += FORGOTTEN_AFTER_SECONDS + 1
        with heard(url, last_id) as stream:
            late = stream.event().kind

    assert (soon, late) == ("hello", "reset")


def test_one_too_many_is_refused_until_another_goes() -> None:
    """With a problem, before anything of a stream; the place of who has gone is free."""
    made = api(Stored(), most=2)
    with listening(made) as url:
        with heard(url) as stream:
            stream.event("hello")
            with heard(url) as second:
                second.event("hello")
                with heard(url) as third:
                    said = third.json()
                    assert (third.status, said["type"]) == (503, "/problems/busy")
                    assert int(third.headers["retry-after"]) > 0
                    assert "2 streams are open already" in said["detail"]
                stored_open = made.services.live.places.n_taken
            until(lambda: made.services.live.places.n_taken == 1)
            with heard(url) as again:
                assert again.event("hello").kind == "hello"

    assert stored_open == 2
    assert counted(made, "gnomon_api_problems_total", "busy") == 1


def test_a_client_that_goes_is_noticed() -> None:
    """Its place is free, and its end is counted, also where it never reads a byte."""
    made = api(Stored(), heartbeat_seconds=600.0)
    with listening(made) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=SECONDS) as client:
            client.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            until(lambda: made.services.live.places.n_taken == 1)
        until(lambda: made.services.live.places.n_taken == 0)
        until(lambda: counted(made, "gnomon_api_streams_ended_total", "gone") == 1)


def test_a_client_that_takes_nothing_is_cut_and_holds_nobody() -> None:
    """Others are told all the while; its place is free."""
    stored = Stored()
    made = api(stored, heartbeat_seconds=0.0001, send_seconds=0.3)
    with listening(made, send_buffer_bytes=4096) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.socket() as slow, heard(url) as stream:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            slow.settimeout(SECONDS)
            slow.connect((host, int(port)))
            slow.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            stream.event("hello")
            until(lambda: made.services.live.places.n_taken == 2)
            n_told = 0
            deadline = time.monotonic() + SECONDS
            while counted(made, "gnomon_api_streams_ended_total", "slow") == 0:
                assert time.monotonic() < deadline
                stored.counts["requests"] += 1
                stream.event("requests")
                n_told += 1
            until(lambda: made.services.live.places.n_taken == 1)
            stored.counts["heads"] += 1

            assert stream.event("heads").data["n"] == 1
            assert n_told > 1


def test_a_stream_ends_properly_when_it_is_old() -> None:
    """And its client goes on where it was."""
    made = api(Stored(), longest_seconds=0.2)
    with listening(made) as url:
        with heard(url) as stream:
            last_id = stream.event("hello").id
            assert stream.rest().replace(":\n\n", "") == ""
        with heard(url, last_id) as stream:
            assert stream.event().kind == "hello"

    assert counted(made, "gnomon_api_streams_ended_total", "old") >= 1


def test_streams_end_with_the_api() -> None:
    """Each with a proper end; none begins any more."""
    made = api(Stored(), heartbeat_seconds=600.0)
    with listening(made) as url, heard(url) as stream:
        stream.event("hello")
        until(lambda: made.services.live.places.n_taken == 1)
        made.services.live._poller.get_loop().call_soon_threadsafe(made.services.live.close)  # type: ignore[union-attr]
        assert stream.rest().replace(":\n\n", "") == ""
        with heard(url) as late:
            assert late.json()["type"] == "/problems/busy"

    assert counted(made, "gnomon_api_streams_ended_total", "shutdown") == 1


def token(name: str, role: Any = "read") -> Token:
    return Token(Caller(name, role), hashlib.sha256(name.encode()).digest())


def test_a_token_is_needed_and_one_that_is_taken_away_ends_the_stream() -> None:
    """As for every other reading; a reload that keeps the token keeps the stream."""
    made = api(Stored(), Access([token("ann"), token("bob")]), heartbeat_seconds=0.05)

    def reload(*tokens: Token) -> None:
        old = made.services.holder.value
        made.services.holder.value = InForce(old.settings, Access(tokens), old.rules)

    with listening(made) as url:
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer no"}, 401),
            ({"Authorization": "Bearer ann"}, 200),
        ):
            with heard(url, headers=headers) as stream:
                assert stream.status == status
        with (
            heard(url, headers={"Authorization": "Bearer bob"}) as stream,
            heard(url, headers={"Cookie": "gnomon_token=ann"}) as other,
        ):
            stream.event("hello")
            other.event("hello")
            reload(token("ann"))
            assert stream.rest().replace(":\n\n", "") == ""
            assert [other.block() for _ in range(5)] == [[":"]] * 5

    assert counted(made, "gnomon_api_streams_ended_total", "revoked") == 1


def test_a_clickhouse_that_is_away_ends_no_stream() -> None:
    """It is looked for again; what came meanwhile is told when it is back."""
    stored = Stored()
    made = api(stored)
    with listening(made) as url, heard(url) as stream:
        stream.event("hello")
        begun(made)
        stored.error = StoreAway("ClickHouse does not answer")
        until(lambda: counted(made, "gnomon_api_stream_looks_total", "failed") > 2)
        stored.counts["alerts"] += 1
        stored.error = None

        assert stream.event("alerts").data["n"] == 1


def test_a_bug_in_a_look_ends_no_stream(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged."""
    stored = Stored()
    made = api(stored)
    with listening(made) as url, heard(url) as stream:
        stream.event("hello")
        begun(made)
        stored.error = KeyError("x")
        until(lambda: counted(made, "gnomon_api_stream_looks_total", "failed") > 0)
        stored.error = None
        stored.counts["heads"] += 1

        assert stream.event("heads").data["n"] == 1
    assert "cannot look for what is new" in caplog.text


def test_the_range_that_is_counted_moves_with_time() -> None:
    """It stays short, however long somebody listens, and what is stored at the very moment is told."""
    stored = Stored()
    made = api(stored)
    now = [AT]
    made.services.asking._now = lambda: now[0]
    with listening(made) as url, heard(url) as stream:
        stream.event("hello")
        begun(made)
        assert stored.asked[0]["from"] == (AT - WINDOW).strftime("%Y-%m-%d %H:%M:%S.000")
        stored.counts["requests"] += 1
        now[0] = AT + MOVED_AFTER
        assert stream.event("requests").data["n"] == 1
        moved = (now[0] - WINDOW).strftime("%Y-%m-%d %H:%M:%S.000")
        until(lambda: stored.asked[-1]["from"] == moved)
        n_then = len(stored.asked)
        until(lambda: len(stored.asked) > n_then + 3)
        stored.counts["heads"] += 1

        assert stream.event().kind == "heads"
        assert {bound["from"] for bound in stored.asked[n_then:]} == {moved}


def test_unknown_parameters_and_ids_too_long_are_refused() -> None:
    """As everywhere."""
    made = api(Stored())

    assert made.get("/v1/stream", kind="x").problem == "invalid-parameter"
    assert made.get("/v1/stream", headers={"last-event-id": "x" * 65}).problem == "invalid-parameter"
    assert made.call("POST", "/v1/stream").problem == "method-not-allowed"


def test_what_all_are_told_is_written_once() -> None:
    """Who is at the same place gets the same bytes."""

    async def two() -> None:
        live = api(Stored()).services.live
        async with live.listen("") as one, live.listen("") as other:
            live._changes.saw({})
            live._changes.saw({"heads": Mark(1, AT)})
            assert live.news(one) is live.news(other)
            assert live.news(one) == b""

    asyncio.run(two())


def test_the_window_is_shorter_than_what_moves_it() -> None:
    """Else it would move at each look."""
    assert timedelta(0) < WINDOW < MOVED_AFTER
