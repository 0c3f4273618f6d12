"""The connection to ClickHouse: what is known after each kind of failure."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from ingest.engine import MAX_BLOCK_ROWS, Engine, Mark, literal
from ingest.errors import EngineAway, EngineRefused, Fenced, UnknownOutcome
from ingest.native import Column, bools

MARK = Mark("ab", "log", 0, 7)
COLUMNS = (Column("b", "Bool", bools),)
HTTP = "HTTP/1.1 {} X\r\nContent-Length: {}\r\n{}\r\n{}"
Serve = Callable[..., Engine]


def answer(body: str = "", status: int = 200, headers: str = "") -> bytes:
    return HTTP.format(status, len(body), headers, body).encode()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Give a function that starts a server of fixed answers; an empty one closes the connection instead."""
    sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []
    engines: list[Engine] = []
    asked: list[bytes] = []

    def start(*answers: bytes, fence: str = "front") -> Engine:
        listener = socket.create_server(("127.0.0.1", 0))
        sockets.append(listener)
        rest = list(answers)

        def work() -> None:
            while rest:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    while rest:
                        request = b""
                        while b"\r\n\r\n" not in request:
                            data = connection.recv(65536)
                            if not data:
                                break
                            request += data
                        if not request:
                            break
                        asked.append(request)
                        reply = rest.pop(0)
                        if not reply:
                            break
                        connection.sendall(reply)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        threads.append(thread)
        engine = Engine(f"http://127.0.0.1:{listener.getsockname()[1]}", "u", "p", timeout_seconds=5, fence=fence)  # type: ignore[arg-type]
        engine.asked = asked  # type: ignore[attr-defined]
        engines.append(engine)
        return engine

    yield start
    for engine in engines:
        engine.close()
    for listener in sockets:
        listener.close()
    for thread in threads:
        thread.join(5)


def test_nobody_there_means_nothing_was_sent() -> None:
    """Away, and not unknown."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(EngineAway) as caught:
        Engine(f"http://127.0.0.1:{port}", fence="front").insert("t", COLUMNS, [[True]], MARK)
    assert not isinstance(caught.value, UnknownOutcome)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
        b"nonsense\r\n\r\n",
        answer("too many parts", 500, "X-ClickHouse-Exception-Code: 252\r\n"),
        answer("Code: 999", 500, "X-ClickHouse-Exception-Code: 999\r\n"),
        answer("bad gateway", 502),
    ],
    ids=["closed", "cut", "no HTTP", "busy", "an exception", "a proxy's error"],
)
def test_an_insert_without_a_whole_answer_may_have_run(serve: Serve, reply: bytes) -> None:
    """Whatever came back, only 200 says that it is stored."""
    with pytest.raises(UnknownOutcome):
        serve(reply).insert("t", COLUMNS, [[True]], MARK)


def test_an_insert_is_never_sent_twice_by_itself(serve: Serve) -> None:
    """A kept connection that breaks is an unknown outcome, not a reason to try again."""
    engine = serve(answer("1\n"), b"", answer(""))
    engine.rows("SELECT 1")
    with pytest.raises(UnknownOutcome):
        engine.insert("t", COLUMNS, [[True]], MARK)

    assert sum(b"INSERT" in request for request in engine.asked) == 1  # type: ignore[attr-defined]


def test_fenced_is_certain(serve: Serve) -> None:
    """The one refusal after which nothing was stored."""
    with pytest.raises(Fenced):
        serve(answer("DB::Exception: fenced: epoch 7", 500, "X-ClickHouse-Exception-Code: 236\r\n")).insert(
            "t", COLUMNS, [[True]], MARK
        )


def test_a_query_that_is_refused_says_why(serve: Serve) -> None:
    """With ClickHouse's own code."""
    with pytest.raises(EngineRefused, match="no such table") as caught:
        serve(answer("no such table", 404, "X-ClickHouse-Exception-Code: 60\r\n")).rows("SELECT 1")
    assert caught.value.code == 60


def test_the_front_is_known_by_its_header(serve: Serve) -> None:
    """It keeps the fence itself; a server's insert carries its own condition and switches async inserts off."""
    assert serve(answer("1\n", headers="X-Gnomon-Boot: x\r\n"), fence="ask").fence() == "front"
    server = serve(answer("1\n"), answer(""), answer(""), fence="ask")
    server.insert("t", COLUMNS, [[True]], MARK)
    server.insert("sink_epochs", COLUMNS, [[True]], MARK)
    first, second = [request for request in server.asked if b"INSERT" in request]  # type: ignore[attr-defined]

    for request in (first, second):
        # A body that came in a packet of its own stands in front of the next request.
        assert b"POST /?query=%2F%2Afence%3Aab%3Alog%3A0+7%2A%2FINSERT+INTO+gnomon_core." in request
        assert b"async_insert=0" in request
    assert b"throwIf" in first
    assert b"throwIf" not in second


def test_rows_are_texts_without_escapes(serve: Serve) -> None:
    """Tabs, line feeds and backslashes are values; NULL is told apart from the text of it."""
    engine = serve(answer("a\\tb\\\\n\t\\N\n\t\n"))

    assert engine.rows("SELECT 1") == [["a\tb\\n", "\\N"], ["", ""]]


def test_more_than_one_block_is_never_sent(serve: Serve) -> None:
    """Two blocks are two parts: their death between is silent loss."""
    with pytest.raises(ValueError, match="more than one block"):
        serve().insert("t", COLUMNS, [[True] * (MAX_BLOCK_ROWS + 1)], MARK)


@pytest.mark.parametrize(("text", "expected"), [("a", "'a'"), ("a'b\\", "'a\\'b\\\\'"), ("", "''")])
def test_a_literal_stays_one(text: str, expected: str) -> None:
    """Keys come from files and topics."""
    assert literal(text) == expected
