"""A pair as its page shows it: the rules in force, place by place."""

import pytest

from api.pages.judged import mask_for
from gnomon.compare.masks import parse


@pytest.mark.parametrize(
    ("generic", "mask"),
    [
        ("$.result[*].logs[*].logIndex", "*.logs.*.logIndex"),
        ("$.result.storage[*].value", "storage.*.value"),
        ("$.result['a.b'].c", "'a.b'.c"),
        ("$.result", ""),
        ("$.result[*]", ""),
        ("$.error.code", ""),
    ],
)
def test_a_path_has_a_mask(generic: str, mask: str) -> None:
    """One that the comparer reads, where a mask can leave it out."""
    assert mask_for(generic) == mask
    if mask:
        parse(mask)
