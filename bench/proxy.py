"""
CPU per request of the proxy, events on, beside nginx as a plain reverse proxy, in alternating rounds.

    python -m bench proxy [--rounds N] [--seconds N] [--sizes 64,10000,190000]

Needs nginx, wrk and taskset (Debian: nginx, wrk, util-linux) and two cores: the proxies run on core 0, load and nodes
on core 1. Ratios are medians of pairs of the same round. Bodies that repeat and bodies that are all new stand apart: a
body that was sent lately travels as a digest, a new one is walked and stored.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

CHAIN = 31337
LUA = """
local n = 0
request = function()
  n = n + 1
  local to = string.format('0x%040x', n % 512)
  local b = string.format('{"jsonrpc":"2.0","id":%d,"method":"eth_call","params":[{"to":"%s"},"0x384"]}', n, to)
  return wrk.format("POST", wrk.path, {["Content-Type"]="application/json"}, b)
end
done = function(s, l, r)
  io.write(string.format('\\nFIGURES {"n":%d,"p99":%d,"errors":%d}\\n', s.requests, l:percentile(99),
    s.errors.connect + s.errors.read + s.errors.write + s.errors.status + s.errors.timeout))
end
"""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


class Bench:
    """Processes of one size of body, and how to load them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        (folder / "load.lua").write_text(LUA)

    def spawn(self, core: int, *command: str) -> int:
        output = open(self.folder / f"{len(self.processes)}.log", "wb")  # noqa: SIM115  (lives as long as the child)
        argv = ["taskset", "-c", str(core), *command]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.processes.append(process)
        return process.pid

    def stop(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def node(self, n_bytes: int, kind: str) -> int:
        port = free_port()
        self.spawn(1, sys.executable, "-m", "bench._node", str(port), str(n_bytes), kind)
        return port

    def nginx(self, node: int) -> tuple[int, str]:
        port = free_port()
        home = self.folder / f"nginx{port}"
        home.mkdir()
        temporary = " ".join(
            f"{name}_temp_path {home}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (home / "nginx.conf").write_text(
            f"daemon off; worker_processes 1; pid {home}/pid; error_log {home}/error;\n"
            "events { worker_connections 4096; }\n"
            f"http {{ access_log off; {temporary} upstream u {{ server 127.0.0.1:{node}; keepalive 256; }}\n"
            f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://u; proxy_http_version 1.1;\n"
            'proxy_set_header Connection ""; proxy_buffers 8 256k; proxy_buffer_size 256k; '
            "proxy_busy_buffers_size 512k; } } }\n"
        )
        return self.spawn(0, "nginx", "-c", str(home / "nginx.conf")), f"http://127.0.0.1:{port}/"

    def gnomon(self, node: int, shadow: int | None) -> tuple[int, str]:
        port = free_port()
        home = self.folder / f"gnomon{port}"
        home.mkdir()

        def upstream(name: str, at: int, **more: object) -> dict[str, object]:
            evm = {"chainId": CHAIN, "statePollerInterval": "30s"}
            return {"id": name, "endpoint": f"http://127.0.0.1:{at}", "evm": evm, **more}

        upstreams = [upstream("p1", node)]
        if shadow is not None:
            upstreams.append(upstream("s1", shadow, shadow={"enabled": True}))
        network = {
            "architecture": "evm",
            "evm": {"chainId": CHAIN},
            "failsafe": [
                {"matchMethod": "*", "timeout": {"duration": "5s"}, "hedge": {"maxCount": 1, "delay": "250ms"}}
            ],
        }
        config = {
            "projects": [{"id": "main", "networks": [network], "upstreams": upstreams}],
            "gnomon": {"proxy": {"port": port}, "events": {"log": {"path": str(home / "log")}}},
        }
        (home / "gnomon.yaml").write_text(json.dumps(config))
        command = (sys.executable, "-m", "gnomon", "proxy", "--config", str(home / "gnomon.yaml"))
        return self.spawn(0, *command), f"http://127.0.0.1:{port}/main/evm/{CHAIN}"

    def load(self, url: str, seconds: int, connections: int = 32) -> dict[str, int]:
        command = ["taskset", "-c", "1", "wrk", "-t1", f"-c{connections}", f"-d{seconds}", "-s"]
        output = subprocess.run(
            [*command, str(self.folder / "load.lua"), url], capture_output=True, text=True, check=True
        ).stdout
        found = re.search(r"FIGURES (\{.*\})", output)
        if found is None:
            raise SystemExit(f"bench: wrk said {output[-300:]}")
        figures: dict[str, int] = json.loads(found[1])
        return figures


def cpu_us(pid: int) -> float:
    """Return the CPU time of a process and its children so far."""
    total = 0
    todo = [pid]
    while todo:
        current = todo.pop()
        for task in Path(f"/proc/{current}/task").glob("*"):
            total += int((task / "schedstat").read_text().split()[0])
            todo += [int(child) for child in (task / "children").read_text().split()]
    return total / 1000


def wait(url: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [{}, "0x384"]}).encode()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            if b'"result"' in urllib.request.urlopen(request, timeout=2).read():
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"bench: {url} never answered")


def measure(size: int, kind: str, rounds: int, seconds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="gnomon-bench-") as folder:
        bench = Bench(Path(folder))
        try:
            node, shadow = bench.node(size, kind), bench.node(size, "repeat")
            time.sleep(1)
            variants = {
                "nginx": bench.nginx(node),
                "gnomon": bench.gnomon(node, None),
                "gnomon, shadow 100 %": bench.gnomon(node, shadow),
            }
            taken: dict[str, list[float]] = {name: [] for name in variants}
            for _, url in variants.values():
                wait(url)
                bench.load(url, 1)
            for _ in range(rounds):
                for name, (pid, url) in variants.items():
                    before = cpu_us(pid)
                    figures = bench.load(url, seconds)
                    if figures["errors"]:
                        raise SystemExit(f"bench: {name} gave {figures['errors']} errors")
                    taken[name].append((cpu_us(pid) - before) / figures["n"])
        finally:
            bench.stop()
    base = taken["nginx"]
    for name, values in taken.items():
        ratios = sorted(a / b for a, b in zip(values, base, strict=True))
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        print(
            f"{size:>7} B {kind:6} {name:22} {statistics.median(values):7.1f} us CPU a request, "
            f"{statistics.median(ratios):5.2f} x nginx ({spread})",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--sizes", default="64,10000,190000")
    args = parser.parse_args()
    path = os.environ.get("PATH", "") + ":/usr/sbin"
    os.environ["PATH"] = path
    missing = [name for name in ("nginx", "wrk", "taskset") if shutil.which(name, path=path) is None]
    if missing:
        print(f"bench: {', '.join(missing)} missing; Debian: apt-get install nginx wrk util-linux", file=sys.stderr)
        return 1
    for size in (int(text) for text in args.sizes.split(",")):
        for kind in ("repeat", "new"):
            measure(size, kind, args.rounds, args.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
