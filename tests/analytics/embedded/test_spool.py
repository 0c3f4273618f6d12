"""The rows of an insert as a file that the engine reads."""

import os
from pathlib import Path

import pytest

from analytics.embedded.errors import Code, Refusal
from analytics.embedded.spool import Spool

FULL = Path("/dev/full")


@pytest.mark.parametrize("is_on_disk", [False, True])
def test_what_was_written_is_read_from_the_start(tmp_path: Path, is_on_disk: bool) -> None:
    """Whole, as often as asked, and nothing is left behind on disk."""
    rows = Spool(tmp_path if is_on_disk else None)
    rows.write_all([b"a" * 100_000, b"", b"bc"])

    for _ in range(2):
        with rows.read() as path:
            assert Path(path).read_bytes() == b"a" * 100_000 + b"bc"
    rows.close()
    rows.close()

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_read_is_not_given_up() -> None:
    """Its number would belong to another insert's rows while the engine opens it."""
    rows = Spool()
    rows.write(b"x")
    with rows.read() as path:
        rows.close()

        assert Path(path).read_bytes() == b"x"
    with pytest.raises(Refusal) as caught, rows.read():
        pass

    assert caught.value.code == Code.ABORTED


def test_no_room_is_said(tmp_path: Path) -> None:
    """As ClickHouse says it, before anything is stored."""
    with pytest.raises(Refusal) as caught:
        Spool(tmp_path / "nowhere")

    assert caught.value.code == Code.NOT_ENOUGH_SPACE


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_full_disk_is_told_at_the_latest_before_the_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small rows wait in a buffer, and are not lost there."""
    monkeypatch.setattr(os, "memfd_create", lambda _name: os.open(FULL, os.O_RDWR), raising=False)
    rows = Spool()
    rows.write(b"small")

    with pytest.raises(Refusal) as caught, rows.read():
        pass
    assert caught.value.code == Code.NOT_ENOUGH_SPACE
    rows.close()
