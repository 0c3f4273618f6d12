"""Where the next segment comes from."""

import pytest

from gnomon.events.log.plan import Create, Recycle, Remove, plan_next

SEGMENT = 100


@pytest.mark.parametrize(
    ("sizes_by_base", "consumed", "max_bytes", "expected"),
    [
        pytest.param({}, 0, 200, Create(), id="no log yet"),
        pytest.param({0: 100}, 0, 200, Create(), id="room for one more"),
        pytest.param({0: 100}, 0, 199, None, id="one byte short"),
        pytest.param({0: 100, 5: 100}, 0, 200, None, id="full, nothing consumed"),
        pytest.param({0: 100, 5: 100}, 4, 200, None, id="consumed all but the last record of the oldest"),
        pytest.param({0: 100, 5: 100}, 5, 200, Recycle(0), id="consumed exactly the oldest"),
        pytest.param({0: 100, 5: 100}, 4, 300, Create(), id="room, nothing consumed"),
        pytest.param({0: 100, 5: 100}, 5, 300, Recycle(0), id="consumed goes before room"),
        pytest.param({5: 100}, 9, 100, None, id="the newest is never consumed"),
        pytest.param({5: 100, 9: 100, 12: 100}, 12, 300, Recycle(5), id="the oldest first"),
        pytest.param({0: 70, 5: 100}, 5, 300, Remove(0), id="another size than now"),
        pytest.param({0: 250, 5: 100}, 0, 449, None, id="sizes are added as they are"),
        pytest.param({0: 250, 5: 100}, 0, 450, Create(), id="sizes are added as they are, limit"),
    ],
)
def test_plan(
    sizes_by_base: dict[int, int], consumed: int, max_bytes: int, expected: Recycle | Remove | Create | None
) -> None:
    """Consumed segments go first, then room, then nothing."""

    assert expected == plan_next(sizes_by_base, consumed, SEGMENT, max_bytes)
