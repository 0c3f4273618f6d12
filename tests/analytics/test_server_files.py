"""A ClickHouse server's users: a writer for the services, a reader for people."""

import re
import stat
from pathlib import Path

import pytest

from analytics.server_files import config_xml, digest, users_xml
from gnomon.cli import main
from tests.analytics.bare_engine import run

CONFIG = """projects: [{id: main, upstreams: [{id: a, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}]}]
gnomon: {clickhouse: {user: gnomon, passwordFile: FOLDER/writer, readerUser: people, readerPasswordFile: FOLDER/reader}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with both users."""
    for name in ("writer", "reader"):
        (tmp_path / name).write_text(f"secret of the {name}\n")
    path = tmp_path / "gnomon.yaml"
    path.write_text(CONFIG.replace("FOLDER", str(tmp_path)))
    return path


def test_the_files_hold_no_password_and_are_ours_alone(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Digests are what a server needs; the names of the files are all that is printed."""
    out = config.parent / "server"

    assert main(["config", "clickhouse", str(config), "--out", str(out)]) == 0
    paths = [out / "users.d" / "gnomon.xml", out / "config.d" / "gnomon.xml"]
    assert capsys.readouterr().out.split() == [str(path) for path in paths]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in paths)
    assert "secret" not in "".join(path.read_text() for path in paths)
    assert (
        users_xml("gnomon", digest("secret of the writer"), "people", digest("secret of the reader"), is_cluster=False)
        == paths[0].read_text()
    )


def test_without_both_users_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the four keys."""
    path = tmp_path / "gnomon.yaml"
    path.write_text(CONFIG.partition("gnomon:")[0])

    assert main(["config", "clickhouse", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "readerPasswordFile" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.clickhouse
@pytest.mark.parametrize("is_cluster", [False, True])
def test_the_engine_knows_every_user_right_and_limit(tmp_path: Path, is_cluster: bool) -> None:
    """
    Read by the engine as a server's would be. The reader may read the views and nothing else, its limits can be lowered
    only, and the writer's settings on which exactness rests are fixed.
    """
    users = users_xml("gnomon", digest("a"), "people", digest("b"), is_cluster=is_cluster)
    # The engine always runs as `default`, which on a server is there beside ours.
    own = (
        "<users><default><password></password><networks><ip>::/0</ip></networks><profile>default</profile>"
        "<quota>default</quota><access_management>1</access_management></default>"
    )
    users = users.replace("<users>", own, 1).replace("<profiles>", "<quotas><default/></quotas><profiles><default/>", 1)
    (tmp_path / "users.xml").write_text(users)
    config = config_xml().replace("<timezone>", f"<users_config>{tmp_path / 'users.xml'}</users_config><timezone>", 1)
    (names, _), (rights, error), (elements, _) = run(
        tmp_path,
        config,
        [
            "SELECT name, auth_type FROM system.users WHERE name != 'default' ORDER BY name",
            "SELECT user_name, access_type, database, table FROM system.grants WHERE user_name != 'default'",
            "SELECT profile_name, setting_name, value, min, max, writability FROM system.settings_profile_elements",
        ],
    )
    granted = [line.split("\t") for line in rights.splitlines()]
    limits = {tuple(line.split("\t")[:2]): line.split("\t")[2:] for line in elements.splitlines()}

    assert error == ""
    assert names.splitlines() == ["gnomon\t['sha256_password']", "people\t['sha256_password']"]
    assert [row[1:] for row in granted if row[0] == "people"] == [["SELECT", "gnomon", "\\N"]]
    theirs = {row[1] for row in granted if row[0] == "gnomon"}
    assert {"SELECT", "INSERT", "CREATE TABLE", "SET DEFINER"} <= theirs
    assert not {"FILE", "URL", "S3", "MYSQL"} & theirs
    assert (("CLUSTER" in theirs) and bool(theirs & {"REMOTE", "READ", "WRITE"})) is is_cluster
    assert limits["gnomon_writer", "async_insert"][3] == "CONST"
    assert limits["gnomon_reader", "readonly"] == ["2", "\\N", "\\N", "CONST"]
    assert limits["gnomon_reader", "max_execution_time"][:3] == ["30", "1", "30"]
    assert re.search(r"gnomon_reader\tallow_ddl\t0\t", elements)
