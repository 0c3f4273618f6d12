"""
What a ClickHouse server needs to know of us: two users and their limits, as files for `users.d` and `config.d`.

The writer owns both databases; on a cluster it may also send statements to all servers and ask all replicas. It has no
rights on files and foreign hosts otherwise. The reader sees the views in `gnomon`, in read-only statements with limits
that it may lower and not raise. A view reads with the writer's rights, so the reader needs none on the tables.

Joins of distributed tables are made global (`distributed_product_mode`): what the right side gives is sent to each
shard, as it lies on all of them.
"""

from collections.abc import Mapping
from hashlib import sha256
from xml.sax.saxutils import escape

from analytics.embedded.configuration import READER_GRANT, WRITER_GRANT
from analytics.embedded.engine import READER_LIMITS

READER_USER = "gnomon_reader"
CLUSTER_GRANTS = (
    "GRANT CLUSTER ON *.*",
    "GRANT REMOTE ON *.*",
)
"""ON CLUSTER, distributed tables, and clusterAllReplicas by which a new owner asks every replica."""
_WRITER_SETTINGS: Mapping[str, str] = {
    "async_insert": "0",
    "distributed_foreground_insert": "1",
    "distributed_product_mode": "global",
    "date_time_input_format": "best_effort",
}
_FIXED = ("async_insert", "distributed_foreground_insert")
"""The sink's rule rests on them: no statement may set them otherwise."""
_READER_SETTINGS: Mapping[str, str] = {
    **READER_LIMITS,
    "readonly": "2",
    "allow_introspection_functions": "0",
    "distributed_product_mode": "global",
}
_FREE = frozenset({"distributed_product_mode"})


def digest(password: str) -> str:
    """Return what a server keeps of a password."""
    return sha256(password.encode()).hexdigest()


def users_xml(
    writer: str, writer_sha256: str, reader: str, reader_sha256: str, *, is_cluster: bool, keeps_default: bool = True
) -> str:
    """
    Return the text of `users.d/gnomon.xml`.

    Args:
        writer, reader: names.
        writer_sha256, reader_sha256: `digest` of their passwords.
        is_cluster: whether the writer sends statements to all servers.
        keeps_default: whether ClickHouse's user `default`, who needs no password, stays.
    """
    default = "" if keeps_default else '    <default remove="remove"/>\n'
    grants = (WRITER_GRANT, *(CLUSTER_GRANTS if is_cluster else ()))
    return f"""<!-- Made by `gnomon config clickhouse`: the users of Gnomon and what they may do. -->
<clickhouse>
  <profiles>
{_profile("gnomon_writer", _WRITER_SETTINGS, dict.fromkeys(_FIXED, "<const/>"))}
{_profile("gnomon_reader", _READER_SETTINGS, _reader_constraints())}
  </profiles>
  <users>
{default}{_user(writer, writer_sha256, "gnomon_writer", grants)}
{_user(reader, reader_sha256, "gnomon_reader", (READER_GRANT,))}
  </users>
</clickhouse>
"""


def config_xml() -> str:
    """Return the text of `config.d/gnomon.xml`."""
    return """<!-- Made by `gnomon config clickhouse`: what Gnomon wants of the server itself. -->
<clickhouse>
  <timezone>UTC</timezone>
  <access_control_improvements>
    <select_from_system_db_requires_grant>true</select_from_system_db_requires_grant>
    <settings_constraints_replace_previous>true</settings_constraints_replace_previous>
  </access_control_improvements>
</clickhouse>
"""


def _reader_constraints() -> dict[str, str]:
    found = {}
    for name, value in _READER_SETTINGS.items():
        if name in _FREE:
            continue
        is_limit = name.startswith("max_") and value != "0"
        found[name] = f"<min>1</min><max>{value}</max>" if is_limit else "<const/>"
    return found


def _profile(name: str, settings: Mapping[str, str], constraints: Mapping[str, str]) -> str:
    lines = [f"    <{name}>"]
    lines += [f"      <{setting}>{value}</{setting}>" for setting, value in settings.items()]
    lines += ["      <constraints>"]
    lines += [f"        <{setting}>{rule}</{setting}>" for setting, rule in constraints.items()]
    return "\n".join([*lines, "      </constraints>", f"    </{name}>"])


def _user(name: str, sha256_hex: str, profile: str, grants: tuple[str, ...]) -> str:
    lines = [
        f"    <{name}>",
        f"      <password_sha256_hex>{sha256_hex}</password_sha256_hex>",
        "      <networks><ip>::/0</ip></networks>",
        f"      <profile>{profile}</profile>",
        "      <quota>default</quota>",
        f"      <grants>{''.join(f'<query>{escape(grant)}</query>' for grant in grants)}</grants>",
        f"    </{name}>",
    ]
    return "\n".join(lines)
