"""The configuration that the demonstration writes."""

import socket
from pathlib import Path

import pytest
import yaml

from gnomon.demo import settings
from gnomon.demo.simulated import SimulatedWorld
from gnomon.demo.world import Endpoint


def world(kind: str) -> SimulatedWorld:
    made = SimulatedWorld(now=1_700_000_000.0)
    made.kind = kind
    made.primary = Endpoint("a", "http://127.0.0.1:1", "x")
    made.shadow = Endpoint("b", "http://127.0.0.1:2", "y")
    made.fallback = Endpoint("c", "http://127.0.0.1:3", "z")
    return made


def test_three_tiers(tmp_path: Path) -> None:
    """One primary, one priced fallback, one shadow; the file is YAML and says how to ask the data again."""
    file = settings.write(world("simulated"), settings.Ports(1, 2, 3), tmp_path)
    text = file.read_text()
    upstreams = yaml.safe_load(text)["projects"][0]["upstreams"]

    assert [u["id"] for u in upstreams] == ["a", "c", "b"]
    assert upstreams[1]["tags"] == ["tier:fallback"]
    assert upstreams[1]["vendorName"] == "alchemy"
    assert upstreams[2]["shadow"] == {"enabled": True}
    assert text.startswith("# ")
    assert "gnomon clickhouse --config" in text


def test_real_nodes_get_masks_for_their_hashes() -> None:
    """Two real implementations have block hashes of their own, which the masks take out; other paths stay."""
    shadow = settings.configuration(world("real"), settings.Ports(1, 2, 3))["projects"][0]["upstreams"][2]["shadow"]

    assert "hash" in shadow["ignoreFields"]["eth_getBlockByNumber"]
    assert not [p for paths in shadow["ignoreFields"].values() for p in paths if not p.endswith(("ash", "oot"))]


def test_a_taken_port_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port in use is not chosen."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(settings, "PREFERRED_PORTS", {"proxy": port, "api": 0, "clickhouse": 0})
        ports = settings.choose_ports()

    assert ports.proxy not in (0, port)
