"""docker-compose.yml is what Docker Compose takes, and holds the promises made of it."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from analytics.server_files import config_xml, digest, users_xml
from gnomon.cli import COMMANDS, build_parser
from gnomon.cli.up import DRAIN_MARGIN_SECONDS
from gnomon.config.load import load
from gnomon.process import ALLOCATOR_ENVIRONMENT
from proxy.shipper.keeper import STOP_SECONDS as SHIPPER_SECONDS
from tests.broker.choice import IMAGE
from tests.deploy.tools import COMPOSE_FILE, effective, run, tool
from tests.services import ROOT

pytestmark = pytest.mark.containers

FOLDER = ROOT / "deploy" / "compose"
THEIRS = {"kafka", "clickhouse"}
"""Images of others."""
EXTRA = {"upstreams", "load", "cli"}


@pytest.fixture(scope="module")
def stack() -> dict[str, Any]:
    """All services, as Docker Compose reads them."""
    return effective("demo", "tools")


@pytest.fixture(scope="module")
def services(stack: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = stack["services"]
    return found


def test_the_file_is_valid_by_the_specifications_schema() -> None:
    """The schema is the one that check-jsonschema brings."""
    status, _, messages = run([tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", COMPOSE_FILE])

    assert status == 0, messages


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: s["services"]["proxy"].update(restrat="always"), "restrat"),
        (lambda s: s["services"]["ingest"]["depends_on"].update(nobody={"condition": "service_healthy"}), "nobody"),
        (lambda s: s["services"]["proxy"].update(secrets=["unheard_of"]), "unheard_of"),
    ],
    ids=["key", "service", "secret"],
)
def test_what_is_wrong_with_a_file_would_be_found(tmp_path: Path, change: Any, said: str) -> None:
    """A key that there is not, a service and a secret that nobody declares: the gate can fail."""
    spoilt = yaml.safe_load(COMPOSE_FILE.read_text("utf-8"))
    change(spoilt)
    (tmp_path / "docker-compose.yml").write_text(yaml.safe_dump(spoilt))

    with pytest.raises(AssertionError, match=said):
        effective("demo", file=tmp_path / "docker-compose.yml")


def test_without_a_profile_the_services_of_a_cluster_come_up() -> None:
    """The demonstration's and the tools' are asked for by name."""
    assert set(effective()["services"]) == {"kafka", "clickhouse", "migrate", "proxy", "ingest", "alerts", "api"}
    assert set(effective("demo")["services"]) - set(effective()["services"]) == {"upstreams", "load"}


def test_every_command_is_one_of_ours(services: dict[str, dict[str, Any]]) -> None:
    """With arguments that it takes."""
    for name, service in services.items():
        if name in THEIRS or name == "cli":
            continue
        command = service["command"]
        assert command[0] in COMMANDS
        build_parser(command[0]).parse_args(command)


def test_images_are_pinned(services: dict[str, dict[str, Any]]) -> None:
    """By exact versions: the Kafka that the tests run, a ClickHouse of the line that the embedded engine is."""
    assert services["kafka"]["image"] == IMAGE
    engine = re.search(r"^chdb-core==(\d+\.\d+)", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    assert engine is not None
    assert services["clickhouse"]["image"].startswith(f"clickhouse/clickhouse-server:{engine[1]}.")
    assert re.fullmatch(r"[^:]+:\d+(\.\d+){2,3}", services["clickhouse"]["image"])
    version = re.search(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert version is not None
    assert {s["image"] for n, s in services.items() if n not in THEIRS} == {f"gnomon:{version[1]}"}


def test_nobody_has_more_rights_than_needed(services: dict[str, dict[str, Any]]) -> None:
    """No capability, no way to more; what is ours cannot change its own files and runs as the image's own user."""
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not service.get("privileged"), name
        if name not in THEIRS:
            assert service["read_only"] is True, name
            assert "user" not in service, name
    assert services["clickhouse"]["user"] == "101:101"


def test_everybody_has_limits_and_a_health_check(services: dict[str, dict[str, Any]]) -> None:
    """Memory and processors; what ends by itself, the load and a command by hand have no health to check."""
    for name, service in services.items():
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}, name
        assert ("healthcheck" in service) is (name not in {"migrate", "load", "cli"}), name
        assert service["logging"]["options"]["max-size"], name


def test_what_must_stay_lies_on_volumes(services: dict[str, dict[str, Any]]) -> None:
    """Topics, rows, and events that are not shipped yet."""
    mounts = {
        name: [(v["source"], v["target"]) for v in service.get("volumes", [])] for name, service in services.items()
    }

    assert {name: found for name, found in mounts.items() if found} == {
        "kafka": [("kafka-data", "/var/lib/kafka/data")],
        "clickhouse": [("clickhouse-data", "/var/lib/clickhouse")],
        "proxy": [("events", "/var/lib/gnomon")],
    }
    assert services["kafka"]["environment"]["KAFKA_LOG_DIRS"] == "/var/lib/kafka/data"


def test_kafka_and_clickhouse_are_reached_from_inside_only(stack: dict[str, Any]) -> None:
    """Their network leads nowhere; the ports that are open are the proxy's and the API's, on this machine."""
    services = stack["services"]
    assert stack["networks"]["back"]["internal"] is True
    for name in (*THEIRS, "ingest", "migrate", "cli"):
        assert set(services[name]["networks"]) == {"back"}, name
    ports = {name: [(p["host_ip"], p["target"]) for p in s.get("ports", [])] for name, s in services.items()}
    assert {name: found for name, found in ports.items() if found} == {
        "proxy": [("127.0.0.1", 4000)],
        "api": [("127.0.0.1", 8080)],
    }


def test_the_proxy_waits_for_nobody(services: dict[str, dict[str, Any]]) -> None:
    """It needs neither Kafka nor ClickHouse; all that needs the schema waits for it to be there."""
    assert "depends_on" not in services["proxy"]
    for name in ("ingest", "alerts", "api"):
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert {d: c["condition"] for d, c in services["migrate"]["depends_on"].items()} == {
        "kafka": "service_healthy",
        "clickhouse": "service_healthy",
    }


def test_a_stop_has_the_time_that_it_needs(services: dict[str, dict[str, Any]]) -> None:
    """A kill before the end of a drain would cost clients their answers, and rebalances their rest."""

    def seconds(name: str) -> float:
        text = services[name]["stop_grace_period"]
        minutes, _, rest = text.rpartition("m")
        return float(minutes or 0) * 60 + float(rest.rstrip("s") or 0)

    assert seconds("proxy") > 10 + DRAIN_MARGIN_SECONDS + SHIPPER_SECONDS
    assert seconds("ingest") > build_parser("ingest").parse_args(["ingest"]).stop_timeout
    assert ALLOCATOR_ENVIRONMENT.items() <= services["proxy"]["environment"].items()


def test_workers_can_be_scaled(services: dict[str, dict[str, Any]]) -> None:
    """No name and no port that two of them would fight for."""
    assert services["ingest"]["deploy"]["replicas"] == 2
    assert effective(environment={"INGEST_WORKERS": "5"})["services"]["ingest"]["deploy"]["replicas"] == 5
    assert not {"container_name", "hostname", "ports"} & set(services["ingest"])


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of secrets, made by the script in a copy of its folder."""
    copy = tmp_path_factory.mktemp("compose")
    for name in ("make-secrets.sh", "clickhouse/users.xml"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text((FOLDER / name).read_text("utf-8"))
    for _ in range(2):  # the second time changes nothing
        subprocess.run(["sh", "./make-secrets.sh"], cwd=copy, check=True, capture_output=True)
    return copy / "secrets"


def test_every_secret_is_a_file_that_the_script_makes(stack: dict[str, Any], secrets: Path) -> None:
    """None is in the file itself, in an environment or in the clone; containers' users can read them, others cannot."""
    named = {Path(secret["file"]).name for secret in stack["secrets"].values()}

    assert named <= {file.name for file in secrets.iterdir()}
    assert secrets.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in secrets.iterdir()} == {0o444}
    assert all(len(file.read_text().strip()) >= 32 for file in secrets.iterdir())
    assert "/deploy/compose/secrets/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
    names = {key for s in stack["services"].values() for key in (s.get("environment") or {})}
    assert not [name for name in names if re.search("SECRET|PASSWORD|TOKEN|KEY", name)]


def test_secrets_are_new_each_time_and_stay(secrets: Path, tmp_path: Path) -> None:
    """One that is named is made anew, in the same file, with the digests that go with it; the others stay."""
    copy = tmp_path / "copy"
    for file in [*secrets.iterdir(), secrets.parent / "clickhouse" / "users.xml", secrets.parent / "make-secrets.sh"]:
        target = copy / file.relative_to(secrets.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    before = {file.name: (file.read_text(), file.stat().st_ino) for file in (copy / "secrets").iterdir()}
    command = ["sh", "./make-secrets.sh", "clickhouse_writer_password"]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)
    after = {file.name: file.read_text() for file in (copy / "secrets").iterdir()}
    wrong = subprocess.run([*command[:2], "nothing"], cwd=copy, check=False, capture_output=True, text=True)

    assert {name: inode for name, (_, inode) in before.items()} == {
        file.name: file.stat().st_ino for file in (copy / "secrets").iterdir()
    }
    assert (wrong.returncode, "api_token" in wrong.stderr) == (2, True)
    assert {name for name in after if after[name] != before[name][0]} == {
        "clickhouse_writer_password",
        "clickhouse_users.xml",
    }
    assert digest(after["clickhouse_writer_password"].strip()) in after["clickhouse_users.xml"]


def test_clickhouse_gets_the_users_that_we_make(stack: dict[str, Any], secrets: Path) -> None:
    """As `gnomon config clickhouse` writes them, without the user that needs no password; and its settings."""
    passwords = [(secrets / f"clickhouse_{who}_password").read_text().strip() for who in ("writer", "reader")]
    writer, reader = map(digest, passwords)
    wanted = users_xml("gnomon", writer, "gnomon_reader", reader, is_cluster=False, keeps_default=False)

    assert (secrets / "clickhouse_users.xml").read_text() == wanted
    assert digest((secrets / "api_token").read_text().strip()) == (secrets / "api_token_sha256").read_text().strip()
    assert (FOLDER / "clickhouse" / "config.xml").read_text("utf-8") == config_xml()
    service = stack["services"]["clickhouse"]
    assert service["secrets"] == [{"source": "clickhouse_users", "target": "/etc/clickhouse-server/users.d/gnomon.xml"}]
    assert service["configs"] == [{"source": "clickhouse", "target": "/etc/clickhouse-server/config.d/gnomon.xml"}]


def test_the_configuration_is_valid_where_it_will_be_read(stack: dict[str, Any], secrets: Path, tmp_path: Path) -> None:
    """With the environment of its services and the secrets that are mounted, and every one of both is needed."""
    text = (FOLDER / "gnomon.yaml").read_text("utf-8").replace("/run/secrets", str(secrets))
    (tmp_path / "gnomon.yaml").write_text(text)
    environment = stack["services"]["ingest"]["environment"]
    settings = load(tmp_path / "gnomon.yaml", environment=environment)

    assert settings.warnings == ()
    assert set(re.findall(r"\$\{([A-Z_]{4,})\}", text)) == set(environment)
    mounted = {Path(secret["target"]).name for secret in stack["services"]["ingest"]["secrets"]}
    assert set(re.findall(rf"{re.escape(str(secrets))}/(\w+)", text)) == mounted
