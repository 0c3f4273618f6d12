"""
The event log on disk: one writer appends, readers of any process follow, and `kill -9` loses nothing reported.

    segment     one file: layout, header, map
    plan        where the next segment comes from (pure)
    supply      the next segment, made ahead
    directory   the writer's lock, the log's id, files that appear whole
    writer      `Writer`: append, roll, sync                     one process per directory
    upkeep      `Upkeep`: the writer's helper thread
    reader      `Reader`: records by number, or a named error    any number
    consumer    `Consumer`: a reader's position, which holds records back
    status      `status`: sizes, counters, lags                  from any process

A directory holds `seg-<first record>`, `next` (made ahead), `at-<consumer>`, `log_id` and `lock`. Errors:
`gnomon.events.errors`.
"""

from gnomon.events.errors import (
    LogAhead,
    LogBehind,
    LogDamaged,
    LogError,
    LogFull,
    LogLocked,
    LogMissing,
    LogReplaced,
    LogUnknown,
    LogUnusable,
)
from gnomon.events.log.consumer import Consumer
from gnomon.events.log.reader import Reader
from gnomon.events.log.status import LogStatus, status
from gnomon.events.log.upkeep import Upkeep
from gnomon.events.log.writer import Writer

__all__ = [
    "Consumer",
    "LogAhead",
    "LogBehind",
    "LogDamaged",
    "LogError",
    "LogFull",
    "LogLocked",
    "LogMissing",
    "LogReplaced",
    "LogStatus",
    "LogUnknown",
    "LogUnusable",
    "Reader",
    "Upkeep",
    "Writer",
    "status",
]
