"""The next segment of a writer, made ahead: a consumed one used again, else a new file."""

import os

from gnomon.events.errors import LogFull
from gnomon.events.log.consumer import consumer_positions
from gnomon.events.log.directory import allocate, has_size
from gnomon.events.log.plan import Create, Recycle, Remove, plan_next
from gnomon.events.log.segment import NEXT_FILE, Segment, list_bases, segment_name


class Supply:
    """
    Holds at most one segment that is ready: the file `next`, mapped, without a header.

    A kill at any line leaves a file without a name of its own (`next`, or `next.new` unfinished), which the next
    writer takes or replaces. One thread at a time: the writer's roll lock sees to that.
    """

    def __init__(self, path: str, log_id: bytes, segment_bytes: int, max_bytes: int) -> None:
        self.path = path
        self.log_id = log_id
        self.segment_bytes = segment_bytes
        self.max_bytes = max_bytes
        self.ready: Segment | None = None

    def make_ready(self) -> Segment:
        """
        Return the segment that is ready, making it when there is none.

        Raises:
            LogFull: the log has its greatest size and nothing in it is consumed.
            LogDamaged: a consumer's position cannot be read.
            OSError: the system refuses, for instance because the disk is full.
        """
        if self.ready is not None:
            return self.ready
        file = os.path.join(self.path, NEXT_FILE)
        is_fresh = False
        if not has_size(file, self.segment_bytes):  # else a killed writer's
            while isinstance(step := self._plan(), Remove):
                os.unlink(os.path.join(self.path, segment_name(step.base)))
            if isinstance(step, Recycle):
                os.rename(os.path.join(self.path, segment_name(step.base)), file)
            else:
                is_fresh = True
                allocate(file, self.segment_bytes)
        self.ready = Segment(file, -1, is_writable=True, is_fresh=is_fresh)
        return self.ready

    def _plan(self) -> Recycle | Remove | Create:
        bases = list_bases(self.path)
        sizes = {base: os.stat(os.path.join(self.path, segment_name(base))).st_size for base in bases}
        step = plan_next(sizes, self._consumed(), self.segment_bytes, self.max_bytes)
        if step is None:
            raise LogFull(self.path, self.max_bytes)
        return step

    def _consumed(self) -> int:
        """Return below which record nobody needs the log any more; 0 when no consumer is registered."""
        return min(consumer_positions(self.path, self.log_id).values(), default=0)

    def remove_one_consumed(self) -> None:
        """Remove the oldest segment when it is consumed and the one behind it can serve the next roll but one."""
        bases = list_bases(self.path)
        if len(bases) > 2 and bases[1] <= self._consumed():
            os.unlink(os.path.join(self.path, segment_name(bases[0])))

    def close(self) -> None:
        """Unmap what is ready; its file stays for the next writer."""
        if self.ready is not None:
            self.ready.close()
            self.ready = None
