"""What is told of the views is what they are, and ClickHouse tells it too."""

from collections.abc import Iterator

import pytest

from analytics.clustering import Cluster
from analytics.migrate import migrate, migrations, plan, whole
from analytics.questions import plain_type
from analytics.views import BadView, View, outdated, parse, statements, views
from gnomon.config.model import Retention
from tests.ingest.engine_process import EngineProcess, migrated_engine

KEPT = Retention(rows_seconds=1e9, bodies_seconds=1e9, rollups_seconds=1e9)
"""As `EngineProcess.migrate` has it."""


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with migrated_engine(tmp_path_factory.mktemp("migrated")) as process:
        yield process


def is_there(process: EngineProcess) -> dict[str, list[tuple[str, str, str]]]:
    """Return view → its columns: name, type, comment."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for view, *column in process.connect().rows(
        "SELECT table, name, type, comment FROM system.columns WHERE database = 'gnomon' ORDER BY table, position"
    ):
        name, kind, comment = map(str, column)
        found.setdefault(str(view), []).append((name, plain_type(kind), comment))
    return found


@pytest.mark.clickhouse
def test_each_view_is_told_as_it_is(migrated: EngineProcess) -> None:
    """Every view, its columns in their order with their types: `analytics/views.yaml` must follow a migration."""
    there = {view: [(name, kind) for name, kind, _ in columns] for view, columns in is_there(migrated).items()}

    assert {view.name: [(c.name, c.type) for c in view.columns] for view in views()} == there


@pytest.mark.clickhouse
def test_clickhouse_tells_it_too(migrated: EngineProcess) -> None:
    """`migrate` leaves each text beside its view and column, with its unit."""
    there = is_there(migrated)
    abouts = dict(migrated.connect().rows("SELECT name, comment FROM system.tables WHERE database = 'gnomon'"))

    for view in views():
        assert abouts[view.name] == view.about
        assert {name: text for name, _, text in there[view.name]} | {"": view.about} == view.comments()


@pytest.mark.clickhouse
def test_a_view_that_was_replaced_gets_its_texts_again(migrated: EngineProcess) -> None:
    """The next `migrate` writes them, and nothing else; the one after has nothing to do."""
    engine = migrated.connect()
    newest = next(m.sql for m in reversed(migrations()) if "VIEW gnomon.alerts\n" in m.sql)
    engine.command(newest.replace("VIEW IF NOT EXISTS", "OR REPLACE VIEW"))
    expected = [view.statement() for view in views() if view.name == "alerts"]

    assert plan(engine, KEPT) == outdated(engine) == expected
    assert migrate(engine, KEPT) == 0
    assert plan(engine, KEPT) == []


@pytest.mark.clickhouse
def test_a_view_that_is_otherwise_is_left_alone(migrated: EngineProcess) -> None:
    """An older or newer schema has other columns: its comments are not ours to write."""
    engine = migrated.connect()
    engine.command("CREATE OR REPLACE VIEW gnomon.gauges AS SELECT 1 AS other")

    assert outdated(engine) == []
    engine.command(
        next(m.sql for m in migrations() if m.name == "create_view_gauges").replace(
            "VIEW IF NOT EXISTS", "OR REPLACE VIEW"
        )
    )
    migrate(engine, KEPT)


def test_texts_with_quotes_stay_whole() -> None:
    """They stand in a statement."""
    (view,) = parse("v: |\n  One 'thing'.\n  a String: the network's \\ head\n")

    assert view.statement() == (
        "ALTER TABLE gnomon.v\n    MODIFY COMMENT 'One \\'thing\\'.',\n"
        "    COMMENT COLUMN `a` 'the network\\'s \\\\ head'"
    )


def test_on_a_cluster_every_server_gets_them() -> None:
    """The same statements, for all."""
    cluster = Cluster("prod")

    assert all(f" {cluster.on}\n" in statement for statement in statements(cluster))
    assert whole(KEPT, cluster)[-len(views()) :] == statements(cluster)


@pytest.mark.parametrize("text", ["v: |\n  no sentence\n  a String: x\n", "v: |\n  One.\n  a String x\n"])
def test_a_text_of_another_form_is_refused(text: str) -> None:
    """The view is named."""
    with pytest.raises(BadView, match=r"^v: "):
        parse(text)


@pytest.mark.parametrize("view", views(), ids=lambda v: v.name)
def test_each_column_has_a_meaning_and_a_unit_where_its_name_says_one(view: View) -> None:
    """Times are UTC, money USD, and so on."""
    units = {"at": "UTC", "us": "us", "bytes": "bytes", "usd": "USD", "hour": "UTC", "minute": "UTC"}
    for column in view.columns:
        word = column.name.rsplit("_", 1)[-1]

        assert column.meaning
        assert column.type
        if word in units and column.type != "String":
            assert column.unit == units[word], column.name
