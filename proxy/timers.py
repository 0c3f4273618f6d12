"""One-shot timers on the wheel for things that are no calls: hedges, pauses, deadlines."""

from collections.abc import Callable

from proxy.wheel import Expiring


class Timer:
    """
    One armed entry of the wheel that calls a function; `cancel` takes it out again.

    Either end drops the function: it belongs to an exchange that holds the timer, and such a ring would keep every
    request in memory until the collector comes by.
    """

    __slots__ = ("_bucket", "action")

    def __init__(self, bucket: set[Expiring], action: Callable[[], None]) -> None:
        self._bucket = bucket
        self.action: Callable[[], None] | None = action
        bucket.add(self)

    def expired(self) -> None:
        action, self.action = self.action, None
        if action is not None:
            action()

    def cancel(self) -> None:
        self._bucket.discard(self)
        self.action = None
