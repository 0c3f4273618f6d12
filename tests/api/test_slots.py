"""Places: taken, waited for, and refused."""

import asyncio

import pytest

from api.errors import Refused
from api.slots import Slots


def test_a_place_is_free_again() -> None:
    """After work that failed too."""

    async def work() -> tuple[int, int]:
        slots = Slots("things are done", 1)
        with pytest.raises(KeyError):
            async with slots.take():
                raise KeyError
        async with slots.take():
            during = slots.n_taken
        return during, slots.n_taken

    assert asyncio.run(work()) == (1, 0)


def test_one_more_than_may_wait_is_refused() -> None:
    """With what is going on, and when to try again; who waits gets the next place, in order."""

    async def work() -> list[str]:
        slots = Slots("things are done", 1, 2)
        said: list[str] = []
        refused, go_on = asyncio.Event(), asyncio.Event()

        async def one(name: str) -> None:
            try:
                async with slots.take():
                    await go_on.wait()
                    said.append(name)
            except Refused as error:
                said.append(f"{error.problem}: {error.detail} {error.headers}")
                refused.set()

        async with asyncio.TaskGroup() as group:
            for name in "abcd":
                group.create_task(one(name))
            await refused.wait()
            go_on.set()
        assert (slots.n_taken, slots.n_waiting) == (0, 0)
        return said

    assert asyncio.run(work()) == ["busy: 3 things are done already; try again {'Retry-After': '2'}", "a", "b", "c"]


def test_who_gives_up_waiting_leaves_no_trace() -> None:
    """A cancelled wait takes no place and is not counted."""

    async def work() -> tuple[int, int]:
        slots = Slots("things are done", 1, 1)
        async with slots.take():
            waiting = asyncio.get_running_loop().create_task(slots.take().__aenter__())
            await asyncio.sleep(0)
            assert slots.n_waiting == 1
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return slots.n_taken, slots.n_waiting

    assert asyncio.run(work()) == (0, 0)
