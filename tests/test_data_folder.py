"""The folder of `--data`: made, or said in one line why not."""

import subprocess
import sys
from pathlib import Path

import pytest

from gnomon import data_folder
from gnomon.errors import GnomonError

CONFIG = "projects: [{id: main, upstreams: [{id: a, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}]}]\n"


def test_it_is_made_with_those_above_it(tmp_path: Path) -> None:
    """And left alone where it is."""
    for _ in range(2):
        data_folder.make(tmp_path / "a" / "b")

    assert (tmp_path / "a" / "b").is_dir()


def test_below_a_file_there_is_none(tmp_path: Path) -> None:
    """The system's reason is named."""
    (tmp_path / "file").write_text("")

    with pytest.raises(GnomonError, match=r"cannot make the data folder .*/file/x: Not a directory; give another"):
        data_folder.make(tmp_path / "file" / "x")


@pytest.mark.parametrize("command", ["up", "clickhouse", "demo"])
def test_a_file_in_its_place_is_told(tmp_path: Path, command: str) -> None:
    """By each command that makes the folder, with status 1 and no traceback. A process each: they change their own."""
    config, file = tmp_path / "gnomon.yaml", tmp_path / "file"
    config.write_text(CONFIG)
    file.write_text("")
    more = ["--simulated"] if command == "demo" else ["--config", str(config)]

    line = [sys.executable, "-m", "gnomon", command, *more, "--data", str(file)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 1, done.stderr
    assert f"gnomon: {file} is no folder; give another --data" in done.stderr
    assert "Traceback" not in done.stderr
