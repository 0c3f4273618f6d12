"""Who reads for people on a server."""

from pathlib import Path

import pytest

from analytics import reading
from analytics.store import Store
from gnomon.config.model import ClickHouseSettings


@pytest.mark.parametrize("reader", ["", "people"])
def test_a_server_gets_the_reader_that_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    """Else the writer; read-only both."""
    for name in ("w", "r"):
        (tmp_path / name).write_text(f"password of {name}\n")
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(reading, "ping", lambda url, wait_seconds: "")
    monkeypatch.setattr(
        Store,
        "connect",
        lambda url, user, password, settings, **_: asked.append((user, password, settings["readonly"])),
    )
    reading.connect(
        ClickHouseSettings(
            user="writer",
            password_file=str(tmp_path / "w"),
            reader_user=reader,
            reader_password_file=str(tmp_path / "r") if reader else "",
        )
    )

    assert asked == [("people", "password of r", 2) if reader else ("writer", "password of w", 2)]
