"""What a receiver still has to get: order, rests, nothing lost."""

from analytics.alerting.queue import Queue


def filled(*keys: str) -> Queue[str]:
    queue: Queue[str] = Queue()
    queue.extend((key, f"{key}{number}") for number, key in enumerate(keys))
    return queue


def test_what_arrived_is_gone() -> None:
    """In the order in which it came."""
    queue = filled("a", "b")
    sent = []
    while (entry := queue.next(0.0)) is not None:
        sent.append(entry.item)
        queue.arrived(entry)

    assert sent == ["a0", "b1"]
    assert queue.next_due(0.0) is None


def test_a_receiver_that_is_away_rests_as_a_whole() -> None:
    """1 s, 2 s, 4 s … 60 s; then it is tried again with the same message."""
    queue = filled("a", "b")
    now, rests = 0.0, []
    for _ in range(8):
        entry = queue.next(now)
        assert entry is not None
        assert entry.item == "a0"
        rests.append(queue.away(entry, now))
        assert queue.next(now) is None
        due = queue.next_due(now)
        assert due is not None
        now = due

    assert rests == [1, 2, 4, 8, 16, 32, 60, 60]
    assert len(queue) == 2


def test_once_it_is_back_it_rests_no_more() -> None:
    """The next failure begins at one second again."""
    queue = filled("a", "b")
    first = queue.next(0.0)
    assert first is not None
    queue.away(first, 0.0)
    queue.arrived(first)
    second = queue.next(0.0)

    assert second is not None
    assert queue.away(second, 0.0) == 1


def test_a_refused_message_does_not_hold_up_others() -> None:
    """But those behind it of the same alert wait: a resolve never overtakes its firing."""
    queue = filled("a", "a", "b")
    entry = queue.next(0.0)
    assert entry is not None
    assert queue.refused(entry, 0.0) == 1
    other = queue.next(0.0)

    assert other is not None
    assert other.item == "b2"
    queue.arrived(other)
    assert queue.next(0.5) is None
    assert queue.next(1.0) is entry
    assert queue.refused(entry, 1.0) == 2


def test_a_receivers_own_wish_counts() -> None:
    """Retry-After, up to ten minutes."""
    queue = filled("a")
    entry = queue.next(0.0)
    assert entry is not None

    assert queue.away(entry, 0.0, after_seconds=30.0) == 30
    assert queue.away(entry, 30.0, after_seconds=1e9) == 600


def test_what_may_not_be_sent_holds_up_only_its_own_key() -> None:
    """Messages of one key keep their order."""
    queue = filled("a", "a", "b")

    entry = queue.next(0.0, lambda item: item != "a0")
    assert entry is not None
    assert entry.item == "b2"
    assert queue.next(0.0, lambda item: False) is None


def test_a_receiver_at_another_address_is_tried_at_once() -> None:
    """Neither its own rest nor that of a message holds."""
    queue = filled("a", "b")
    for key in ("a", "b"):
        entry = queue.next(0.0, lambda item, key=key: item.startswith(key))  # type: ignore[misc]
        assert entry is not None
        queue.refused(entry, 0.0)
    queue.wake()

    assert queue.next(0.0) is not None
    entry = queue.next(0.0)
    assert entry is not None
    queue.away(entry, 0.0)
    assert queue.next(0.0) is None
    queue.wake()
    assert queue.next(0.0) is not None


def test_a_message_that_arrives_after_all_was_cleared() -> None:
    """It was on its way: that is no fault."""
    queue = filled("a", "b")
    entry = queue.next(0.0)
    assert entry is not None
    queue.clear()
    queue.arrived(entry)

    assert len(queue) == 0
