"""Long runs of this room stay off unless asked for by `-m deep`."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is marked deep when no marker expression names it."""
    if "deep" in (config.option.markexpr or ""):
        return
    here = Path(__file__).parent
    deep = [item for item in items if here in item.path.parents and item.get_closest_marker("deep")]
    if deep:
        config.hook.pytest_deselected(items=deep)
        items[:] = [item for item in items if item not in deep]
