"""
The engine's own configuration files, generated at each start with mode 0600 in the data folder.

Without a file of its own the engine would load `./config.xml`, `~/.clickhouse-local/` or `/etc/clickhouse-local/`.
Roles are all the engine has: it always runs as user `default`, so a handle takes one of these roles and the front
decides who gets which handle.
"""

import os
from pathlib import Path
from xml.sax.saxutils import escape

WRITER_ROLE = "gnomon_writer"
READER_ROLE = "gnomon_reader"
CORE_DATABASE = "gnomon_core"
READ_DATABASE = "gnomon"

WRITER_GRANT = (
    "GRANT SELECT, INSERT, ALTER, CREATE DATABASE, CREATE TABLE, CREATE TEMPORARY TABLE, CREATE VIEW, CREATE FUNCTION, "
    "CREATE DICTIONARY, DROP, TRUNCATE, OPTIMIZE, SHOW, KILL QUERY, SYSTEM, dictGet, SET DEFINER ON *.*"
)
"""No source grants (FILE, URL, S3, REMOTE, …): not even the writer reaches files or hosts through SQL."""

WIDE_PART_BYTES = 256 << 20
"""
Uncompressed; smaller parts are one file, not two to four for each column. A batch makes a part in each of nine tables,
and merges some hundred more in a minute: made and deleted as files for each column they took a third of the engine's
time, most of it in the file system (docs/benchmarks.md, worker).
"""

READER_GRANT = f"GRANT SELECT ON {READ_DATABASE}.*"

_USERS = """<clickhouse>
  <profiles><default>
    <async_insert>0</async_insert>
    <allow_python_table_function>0</allow_python_table_function>
    <allow_introspection_functions>0</allow_introspection_functions>
    <date_time_input_format>best_effort</date_time_input_format>
    <cast_string_to_dynamic_use_inference>1</cast_string_to_dynamic_use_inference>
    <constraints>
      <async_insert><const/></async_insert>
      <allow_python_table_function><const/></allow_python_table_function>
      <allow_introspection_functions><const/></allow_introspection_functions>
    </constraints>
  </default></profiles>
  <roles>
    <{writer}><grants><query>{writer_grant}</query></grants></{writer}>
    <{reader}><grants><query>{reader_grant}</query></grants></{reader}>
  </roles>
  <users><default>
    <password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>
    <grants><query>GRANT {writer}</query><query>GRANT {reader}</query></grants>
  </default></users>
  <quotas><default/></quotas>
</clickhouse>
"""

_CONFIG = """<clickhouse>
  <users_config>{users}</users_config>
  <max_server_memory_usage>{memory}</max_server_memory_usage>
  <mark_cache_size>67108864</mark_cache_size>
  <background_pool_size>2</background_pool_size>
  <timezone>UTC</timezone>
  <access_control_improvements>
    <select_from_system_db_requires_grant>true</select_from_system_db_requires_grant>
  </access_control_improvements>
  <merge_tree>
    <old_parts_lifetime>60</old_parts_lifetime>
    <min_bytes_for_wide_part>{wide}</min_bytes_for_wide_part>
    <auto_statistics_types></auto_statistics_types>
  </merge_tree>
</clickhouse>
"""


def write(folder: Path, max_memory_bytes: int) -> Path:
    """
    Write both files into `folder` and return the path of the main one.

    Args:
        folder: absolute; made when missing.
        max_memory_bytes: cap of the whole engine; queries above it fail with code 241, the process lives.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    users, config = folder / "users.xml", folder / "config.xml"
    _write(
        users,
        _USERS.format(
            writer=WRITER_ROLE, reader=READER_ROLE, writer_grant=escape(WRITER_GRANT), reader_grant=escape(READER_GRANT)
        ),
    )
    _write(config, _CONFIG.format(users=escape(str(users)), memory=max_memory_bytes, wide=WIDE_PART_BYTES))
    return config


def memory_cap_bytes() -> int:
    """Return a quarter of this machine's memory, at least 1 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1 << 30, total // 4)


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)
