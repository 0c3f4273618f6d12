"""The level of messages is the one that the configuration names."""

import logging

import pytest

from gnomon import logs
from gnomon.config.keys import SECTIONS
from gnomon.config.schema import Text


def test_each_level_that_a_file_may_name_is_known() -> None:
    """eRPC's words, those that the standard library lacks included."""
    (key,) = (key for section in SECTIONS.values() if (key := section.key("logLevel")) is not None)

    assert isinstance(key.kind, Text)
    assert set(key.kind.choices) == set(logs.LEVELS)


@pytest.mark.parametrize("level", sorted(logs.LEVELS))
def test_a_service_starts_at_each_level(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is refused by the standard library."""
    root = logging.Logger("root of this test")
    monkeypatch.setattr(logging, "root", root)

    logs.start(level)

    assert root.level == logs.LEVELS[level]
    assert len(root.handlers) == 1


def test_disabled_lets_nothing_through() -> None:
    """Not even what is critical."""
    assert logs.LEVELS["disabled"] > logging.CRITICAL
