"""
Reading for people: a connection that can only read, whatever credentials are configured.

The embedded ClickHouse gets no credentials at all: its port judges the statement (gate, role, limits). A server gets
the reader that is configured, else the writer, with `readonly`, and the statement passes the gate here first, where the
server knows the function that the gate needs (ClickHouse 26.9 and newer).
"""

from collections.abc import Mapping
from pathlib import Path

from analytics import gate, questions
from analytics.store import Store, StoreError, ping
from gnomon.config.model import ClickHouseSettings
from gnomon.errors import GnomonError

UNKNOWN_FUNCTION = 46


class SqlNotAllowed(GnomonError):
    """The statement is more than a reader may run."""


def connect(settings: ClickHouseSettings, *, wait_seconds: float = 0.0, timeout_seconds: float = 300.0) -> Store:
    """
    Return a connection with a reader's rights.

    Args:
        settings: where ClickHouse is.
        wait_seconds: how long to try while nobody answers.
        timeout_seconds: of one statement.

    Raises:
        StoreAway: nobody answers at the address.
    """
    limits: Mapping[str, int] = questions.SETTINGS
    if ping(settings.url, wait_seconds):
        return Store.connect(settings.url, settings=limits, timeout_seconds=timeout_seconds)
    user, file = settings.reader_user, settings.reader_password_file
    if not user:
        user, file = settings.user, settings.password_file
    password = Path(file).read_text(encoding="utf-8").strip() if file else ""
    limits = {**limits, "readonly": 2}
    return Store.connect(settings.url, user, password, settings=limits, timeout_seconds=timeout_seconds)


def check(store: Store, sql: str) -> None:
    """
    Return when a reader may run the text, or when the server itself judges it.

    Raises:
        SqlNotAllowed: naming the part.
    """
    if store.is_embedded:
        return

    def parse(text: str) -> gate.Parsed:
        return gate.decode_answer(b"\n".join(store.lines(gate.TREE_QUERY, gate.ROW_FORMAT, {"q": text})))

    def functions() -> frozenset[str]:
        return gate.decode_functions(b"\n".join(store.lines(gate.FUNCTIONS_QUERY, gate.ROW_FORMAT)))

    try:
        gate.Gate(parse, functions, frozenset()).check(sql)
    except gate.NotAllowed as error:
        raise SqlNotAllowed(f"not allowed: {error}") from error
    except StoreError as error:
        if error.code != UNKNOWN_FUNCTION:
            raise
