"""
Tries a page as a reader would: in a folder of its own, block by block, with free ports in place of the usual ones.

What a block starts in the background is started once more where it stands a second time, and ended with the trial.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from gnomon.demo.nodes import CHAIN_ID
from tests.docs.snippets import Block
from tests.ports import free_port, free_ports

READY_SECONDS = 120.0
UNTIL_SECONDS = 60.0
USUAL = {
    "node": 8545,
    "shadow": 8546,
    "fallback": 8547,
    "proxy": 4000,
    "api": 8080,
    "clickhouse": 8123,
    "receiver": 9000,
}
"""Ports that the pages name."""


class Trial:
    """One folder with what runs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        first = free_ports(3)
        self.ports = {"node": first, "shadow": first + 1, "fallback": first + 2}
        self.ports |= {name: free_port() for name in USUAL if name not in self.ports}
        self._written: dict[str, str] = {}
        """As the pages have them."""
        self._n_started = 0
        self._running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}

    def close(self) -> None:
        """End what runs, the newest first."""
        for command in reversed(list(self._running)):
            self._stop(command)

    @property
    def running(self) -> list[str]:
        """What was started in the background, as the pages have it."""
        return list(self._running)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Bring the configuration back at the end, and `gnomon up` with it, where a page has changed it."""
        before, texts = dict(self._written), {name: (self.folder / name).read_text("utf-8") for name in self._written}
        try:
            yield
        finally:
            changed = {name for name, text in texts.items() if (self.folder / name).read_text("utf-8") != text}
            for name in changed:
                (self.folder / name).write_text(texts[name], "utf-8")
            self._written = before
            if changed:
                self._start("gnomon up 2> up.log", "gnomon up: ready")

    def go(self, block: Block) -> None:
        """Do what a block says; AssertionError when it does not do what the page says."""
        if not block.is_run or block.get("within") is not None:
            return
        if (name := block.get("file") or block.get("append")) is not None:
            self._write(name, block.text, is_more=block.get("append") is not None)
        elif block.language == "console":
            self._command(block)

    # --- files --------------------------------------------------------------------------------------------------------

    def _write(self, name: str, text: str, *, is_more: bool) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        self._written[name] = (self._written[name] if is_more else "") + text
        whole = self.adapted(self._written[name])
        if "projects:" in whole and name.endswith(".yaml"):
            whole = self._with_ports(whole)
        file.write_text(whole, "utf-8")

    def _with_ports(self, text: str) -> str:
        """Return a configuration that listens at the trial's ports."""
        settings: dict[str, Any] = yaml.safe_load(text)
        own = settings.setdefault("gnomon", {})
        own.setdefault("proxy", {})["port"] = self.ports["proxy"]
        own.setdefault("api", {})["port"] = self.ports["api"]
        own.setdefault("clickhouse", {})["url"] = f"http://127.0.0.1:{self.ports['clickhouse']}"
        return yaml.safe_dump(settings, sort_keys=False)

    def adapted(self, text: str) -> str:
        """Return a text with the trial's ports in place of the usual ones."""
        for name, port in USUAL.items():
            text = re.sub(rf"\b{port}\b", str(self.ports[name]), text)
        text = re.sub(r"/evm/1\b", f"/evm/{CHAIN_ID}", text)
        return text.replace("gnomon demo --nodes", f"gnomon demo --nodes --node-port {self.ports['node']}")

    # --- commands -----------------------------------------------------------------------------------------------------

    def _command(self, block: Block) -> None:
        text = self.adapted(block.text)
        if (ready := block.get("background")) is not None:
            self._start(block.text, ready)
            return
        wanted = [self.adapted(one) for one in block.all("expect") + block.all("until")]
        heard = block.all("heard")
        deadline = time.monotonic() + (UNTIL_SECONDS if block.get("until") or heard else 0.0)
        while True:
            ran = self._run(text)
            shown = ran.stdout + ran.stderr
            printed = "".join(log.read_text("utf-8", "replace") for _, log in self._running.values())
            missing = [one for one in wanted if one not in shown] + [one for one in heard if one not in printed]
            if (not missing and ran.returncode == int(block.get("status") or 0)) or time.monotonic() > deadline:
                break
            time.sleep(0.5)

        assert missing == [], f"{block}: {shown[-3000:]}\n{self._logs()}"
        assert ran.returncode == int(block.get("status") or 0), f"{block}: {shown[-3000:]}\n{self._logs()}"

    def _run(self, text: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.folder, env=self._environment(), capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        bin_folder = Path(sys.executable).parent
        assert shutil.which("gnomon", path=str(bin_folder)), "the command is not installed beside this Python"
        return {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "NO_PROXY": "127.0.0.1"}

    def _start(self, text: str, ready: str) -> None:
        command = text.strip()
        self._stop(command)
        self._n_started += 1
        log = self.folder / f"background-{self._n_started}.log"
        line = ["bash", "-c", f"exec {self.adapted(command)}"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                line, cwd=self.folder, env=self._environment(), stdout=out, stderr=out, start_new_session=True
            )
        self._running[command] = process, log
        deadline = time.monotonic() + READY_SECONDS
        while ready not in log.read_text("utf-8", "replace"):
            assert process.poll() is None, f"{command} ended: {self._logs()}"
            assert time.monotonic() < deadline, f"{command} is not ready: {self._logs()}"
            time.sleep(0.1)

    def _stop(self, command: str) -> None:
        process, _ = self._running.pop(command, (None, None))
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    def _logs(self) -> str:
        files = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {file.name}\n{file.read_text('utf-8', 'replace')[-3000:]}" for file in files)
