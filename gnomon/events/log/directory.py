"""What a writer does to its directory before it appends: the lock, the log's id, files that appear whole."""

import fcntl
import os
import uuid

from gnomon.events.errors import LogDamaged, LogError, LogLocked, LogReplaced
from gnomon.events.log.segment import LOG_ID_FILE, Segment, list_bases, read_log_id, segment_name, write_whole


def take_lock(path: str) -> int:
    """
    Return the descriptor that holds the writer's lock, until it is closed or its process ends.

    Raises:
        LogLocked: another writer has it.
        OSError: the directory cannot be written.
    """
    fd = os.open(os.path.join(path, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
        os.close(fd)
        raise LogLocked(path, holder) from None
    except OSError:
        os.close(fd)
        raise
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def read_or_make_log_id(path: str) -> bytes:
    """
    Return the log's id; a directory without segments gets one.

    Raises:
        LogDamaged: the id is lost or cut.
    """
    file = os.path.join(path, LOG_ID_FILE)
    if not os.path.exists(file):
        if list_bases(path):
            raise LogDamaged(path, f"{LOG_ID_FILE} is missing beside segments")
        write_whole(file, uuid.uuid4().bytes)
    return read_log_id(path)


def open_checked(path: str, log_id: bytes, base: int) -> Segment:
    """
    Return the segment for writing on, after a look at its header and at every record.

    Raises:
        LogUnknown, LogDamaged: it is not what a writer of this version and of this log left.
    """
    name = segment_name(base)
    # Whether its pages are there is not known, and `pwrite` is right in both cases: fresh.
    segment = Segment(os.path.join(path, name), base, is_writable=True, is_fresh=True)
    try:
        segment.check_header(path, log_id)
        segment.check_records(path)
    except LogReplaced as error:
        segment.close()
        raise LogDamaged(path, f"{name} is of log {error.new_id.hex()}") from None
    except LogError:
        segment.close()
        raise
    return segment


def has_size(file: str, size_bytes: int) -> bool:
    """Return whether the file is there with that size; one of another size is removed."""
    try:
        if os.stat(file).st_size == size_bytes:
            return True
    except FileNotFoundError:
        return False
    os.unlink(file)
    return False


def allocate(file: str, size_bytes: int) -> None:
    """
    Make a file whose every byte has its place on the disk. It appears whole or not at all.

    A store into a hole of a mapped file on a full disk would be SIGBUS and kill the proxy; so a full disk is an error
    here instead. (A file system that copies on write gives no such promise for its second write.)

    Raises:
        OSError: the disk is full, or the system refuses otherwise; nothing is left behind.
    """
    unfinished = f"{file}.new"
    fd = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.posix_fallocate(fd, 0, size_bytes)
    except OSError:
        os.unlink(unfinished)
        raise
    finally:
        os.close(fd)
    os.rename(unfinished, file)
