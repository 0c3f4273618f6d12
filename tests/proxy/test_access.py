"""Who may ask, from where, and for what."""

import asyncio
import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from gnomon.config.model import NetworkAccess
from proxy.access import Denied, check_host, check_origin, find_network, identify
from proxy.networks import ProjectState
from tests.proxy.scripted import PATH, configuration, running, upstreams


@pytest.mark.parametrize(
    ("host", "is_served"),
    [
        ("127.0.0.1:4000", True),
        ("localhost", True),
        ("LOCALHOST:4000", True),
        ("[::1]:4000", True),
        ("[::1]", True),
        ("127.0.0.2:4000", True),
        ("evil.example", False),
        ("evil.example:4000", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example:4000", False),
        ("", False),
    ],
)
def test_a_loopback_port_answers_to_its_own_names(host: str, is_served: bool) -> None:
    """A page that points its own name at loopback gets nothing."""
    if is_served:
        check_host(host, "127.0.0.2", is_loopback=True)
    else:
        with pytest.raises(Denied) as caught:
            check_host(host, "127.0.0.2", is_loopback=True)
        assert caught.value.status == 403


def test_a_public_port_answers_to_any_name() -> None:
    """Names of a service behind a balancer are the operator's."""
    check_host("rpc.example", "0.0.0.0", is_loopback=False)


@pytest.mark.parametrize(
    ("origin", "allowed", "is_allowed"),
    [
        ("", (), True),
        ("http://127.0.0.1:4000", (), True),
        ("https://app.example", ("https://app.example",), True),
        ("https://app.example", ("*",), True),
        ("https://app.example", (), False),
        ("http://app.example", ("https://app.example",), False),
        ("https://app.example.evil.example", ("https://app.example",), False),
        ("http://127.0.0.1:4001", (), False),
        ("http://user@127.0.0.1:4000", (), False),
        ("null", (), False),
        ("http://[", (), False),
        ("127.0.0.1:4000", (), False),
        ("https://app.example.net", ("https://*.example.net",), True),
        ("https://a.b.EXAMPLE.net", ("https://*.example.NET",), True),
        ("https://example.net", ("https://*.example.net",), False),
        ("https://.example.net", ("https://*.example.net",), False),
        ("https://evil.net/.example.net", ("https://*.example.net",), False),
        ("https://evil.net#.example.net", ("https://*.example.net",), False),
        ("https://user@a.example.net", ("https://*.example.net",), False),
        ("https://a.example.net.evil.net", ("https://*.example.net",), False),
        ("https://evilexample.net", ("https://*.example.net",), False),
        ("http://app.example.net", ("https://*.example.net",), False),
        ("https://app.example.net:444", ("https://*.example.net",), False),
        ("https://app.example.net:444", ("https://*.example.net:444",), True),
    ],
)
def test_pages_of_other_origins_need_an_entry(origin: str, allowed: tuple[str, ...], is_allowed: bool) -> None:
    """Exact text, all below a name, or the star; a request without Origin comes from no page."""
    if is_allowed:
        check_origin(origin, "127.0.0.1:4000", allowed)
    else:
        with pytest.raises(Denied) as caught:
            check_origin(origin, "127.0.0.1:4000", allowed)
        assert caught.value.status == 403


def test_a_page_of_no_origin_is_not_at_home_where_no_host_is_named() -> None:
    """`null` is never the same as nothing."""
    with pytest.raises(Denied):
        check_origin("null", "", ())


def project(
    networks: dict[str, str] | None = None,
    access: tuple[NetworkAccess, ...] = (),
    secrets: dict[str, str] | None = None,
) -> ProjectState:
    """Return a project: network id → alias; secret → user. Only what `access` reads is there."""
    users = {hashlib.sha256(secret.encode()).hexdigest(): user for secret, user in (secrets or {}).items()}
    states = {
        name: SimpleNamespace(id=name, config=SimpleNamespace(alias=alias)) for name, alias in (networks or {}).items()
    }
    config = SimpleNamespace(secrets=tuple(users), access=access)
    return cast(ProjectState, SimpleNamespace(config=config, networks=states, users=users))


MANY = {
    "main": project({"evm:1": "ethereum", "evm:10": "", "hive": ""}),
    "other": project({"evm:1": ""}),
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/main/evm/1", ("main", "evm:1")),
        ("/main/evm/1/", ("main", "evm:1")),
        ("//main//evm/10", ("main", "evm:10")),
        ("/main/hive", ("main", "hive")),
        ("/main/ethereum", ("main", "evm:1")),
        ("/other", ("other", "evm:1")),
        ("/other/evm/1", ("other", "evm:1")),
    ],
)
def test_a_path_names_a_network(path: str, expected: tuple[str, str]) -> None:
    """By chain id, by name, by alias, or by the project where it has one only."""
    found, network = find_network(MANY, path)

    assert (found is MANY[expected[0]], network.id) == (True, expected[1])


@pytest.mark.parametrize(
    "path", ["/", "", "/main", "/main/evm", "/main/evm/2", "/main/evm/1/x", "/none/evm/1", "/main/"]
)
def test_an_unknown_path_is_told_what_is_known(path: str) -> None:
    """404 with every address; an empty alias is nobody's name."""
    with pytest.raises(Denied, match="/main/evm/1, /main/evm/10, /main/hive, /other/evm/1") as caught:
        find_network(MANY, path)

    assert caught.value.status == 404


def test_the_root_serves_the_only_network() -> None:
    """Other projects may be there as long as they have none."""
    projects = {"empty": project(), "main": project({"evm:1": ""})}

    assert find_network(projects, "/")[1].id == "evm:1"


def test_an_open_project_has_no_users() -> None:
    """Whatever secrets come along."""
    assert identify(project(), {"x-gnomon-secret": "x"}, "", "203.0.113.9") == ""


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"authorization": "Bearer s3"}, ""),
        ({"authorization": "bearer  s3 "}, ""),
        ({"x-gnomon-secret": "s3"}, ""),
        ({"x-erpc-secret-token": "s3"}, ""),
        ({}, "secret=s3"),
        ({}, "a=b&token=s3"),
        ({"x-gnomon-secret": "wrong", "authorization": "Bearer s3"}, ""),
    ],
)
def test_a_secret_names_its_user(headers: dict[str, str], query: str) -> None:
    """Wherever it is written."""
    assert identify(project(secrets={"s3": "ann", "t": "bob"}), headers, query, "203.0.113.9") == "ann"


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({}, ""),
        ({"x-gnomon-secret": ""}, ""),
        ({"x-gnomon-secret": "S3"}, ""),
        ({"authorization": "s3"}, ""),
        ({"authorization": "Basic s3"}, ""),
        ({}, "secret="),
        ({"x-gnomon-secret": hashlib.sha256(b"s3").hexdigest()}, ""),
    ],
)
def test_without_a_valid_secret_nobody_is_let_in(headers: dict[str, str], query: str) -> None:
    """The stored hash is no secret; loopback is no secret either. The message does not repeat what was sent."""
    with pytest.raises(Denied) as caught:
        identify(project(secrets={"s3": "ann"}), headers, query, "127.0.0.1")

    assert caught.value.status == 401
    assert "s3" not in caught.value.message.lower().replace("secret", "")


LAN = NetworkAccess(id="lan", cidrs=("10.0.0.0/8",), trusted_proxies=("192.0.2.0/24",))
HOME = NetworkAccess(id="home", allow_localhost=True, trusted_proxies=("127.0.0.1/32",))


@pytest.mark.parametrize(
    ("access", "peer", "forwarded", "expected"),
    [
        (LAN, "10.1.2.3", None, "lan"),
        (LAN, "11.0.0.1", None, None),
        (LAN, "10.1.2.3", "11.0.0.1", "lan"),
        (LAN, "11.0.0.1", "10.1.2.3", None),
        (LAN, "192.0.2.7", "10.1.2.3", "lan"),
        (LAN, "192.0.2.7", "10.1.2.3, 192.0.2.8", "lan"),
        (LAN, "192.0.2.7", "10.1.2.3, 203.0.113.5", None),
        (LAN, "192.0.2.7", "unknown", None),
        (LAN, "", None, None),
        (LAN, "::1", None, None),
        (HOME, "127.0.0.1", None, "home"),
        (HOME, "127.0.0.1", "", "home"),
        (HOME, "127.0.0.1", "203.0.113.5", None),
        (HOME, "::1", None, "home"),
        (HOME, "203.0.113.5", "127.0.0.1", None),
    ],
)
def test_an_address_lets_in_and_only_trusted_proxies_may_name_another(
    access: NetworkAccess, peer: str, forwarded: str | None, expected: str | None
) -> None:
    """The last hop that is no trusted proxy is the client; what cannot be read is nobody's address."""
    headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
    if expected is None:
        with pytest.raises(Denied):
            identify(project(access=(access,)), headers, "", peer)
    else:
        assert identify(project(access=(access,)), headers, "", peer) == expected


async def test_what_one_address_may_another_may_not(tmp_path: Path) -> None:
    """Two clients send the same bytes; only the one whose address is listed is served, in either order."""
    async with upstreams(None) as nodes:
        auth = {"auth": {"strategies": [{"type": "network", "network": {"allowedCIDRs": ["127.0.0.2/32"]}}]}}
        async with running(configuration(nodes, project=auth), tmp_path) as proxy:
            statuses = [await ask_from(address, proxy.service.port) for address in ("127.0.0.2", "127.0.0.1") * 2]

    assert statuses == [200, 401, 200, 401]


async def ask_from(address: str, port: int) -> int:
    """Ask from an address of this machine's; return the status."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}).encode()
    head = f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.write(head.encode() + body)
    status = await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    return int(status.split()[1])
