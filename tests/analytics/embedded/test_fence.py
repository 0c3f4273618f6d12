"""The fence lets one owner of a key through, the newest."""

import pytest

from analytics.embedded.fence import EPOCHS_TABLE, BadKey, Fence, check_parameters

KEY = "6f0a:gnomon.responses.v1:0"
EVENTS = ("gnomon_core", "requests")


def test_an_unknown_key_is_asked_of_the_table() -> None:
    """The front has just started."""
    assert Fence().decide(KEY, 1, EVENTS) == "ask"


@pytest.mark.parametrize(("epoch", "expected"), [(6, "fenced"), (7, "run"), (8, "fenced")])
def test_an_insert_runs_under_the_newest_epoch_only(epoch: int, expected: str) -> None:
    """Older is a former owner; newer was never written down."""
    fence = Fence()
    fence.learn(KEY, 7)

    assert expected == fence.decide(KEY, epoch, EVENTS)


@pytest.mark.parametrize(("epoch", "expected"), [(6, "fenced"), (7, "fenced"), (8, "run")])
def test_an_epoch_row_must_be_greater(epoch: int, expected: str) -> None:
    """Two owners that chose the same epoch cannot both be the newest."""
    fence = Fence()
    fence.learn(KEY, 7)

    assert expected == fence.decide(KEY, epoch, EPOCHS_TABLE)


def test_a_stored_epoch_row_makes_its_owner_the_newest() -> None:
    """The former owner is out, the new one in."""
    fence = Fence()
    fence.learn(KEY, 7)
    fence.stored(KEY, 9, EPOCHS_TABLE)

    assert (fence.decide(KEY, 7, EVENTS), fence.decide(KEY, 9, EVENTS)) == ("fenced", "run")


def test_a_failed_epoch_row_makes_the_front_ask_again() -> None:
    """The row may be there or not."""
    fence = Fence()
    fence.learn(KEY, 7)
    fence.unknown(KEY, EPOCHS_TABLE)

    assert fence.decide(KEY, 7, EVENTS) == "ask"


def test_a_failed_insert_changes_nothing() -> None:
    """Only epoch rows move the fence."""
    fence = Fence()
    fence.learn(KEY, 7)
    fence.unknown(KEY, EVENTS)
    fence.stored(KEY, 9, EVENTS)

    assert fence.decide(KEY, 7, EVENTS) == "run"


def test_keys_do_not_touch_each_other() -> None:
    """One key's owner says nothing about another's."""
    fence = Fence()
    fence.learn(KEY, 7)

    assert fence.decide("other:t:0", 7, EVENTS) == "ask"


@pytest.mark.parametrize("key", ["", "a", "a:b", "a:b:x", ":b:0", "a::0", "a:b:-1"])
def test_a_key_of_another_form_is_refused(key: str) -> None:
    """LOG_ID:TOPIC:PARTITION, none of them empty."""
    with pytest.raises(BadKey):
        check_parameters(key)


def test_a_topic_may_have_colons() -> None:
    """The first part is the log, the last the partition."""
    assert check_parameters("a:b:c:3") == {"log_id": "a", "topic": "b:c", "part": "3"}
