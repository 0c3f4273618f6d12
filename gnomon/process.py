"""Process facts that several commands share: dying with the parent, niceness, allocator settings."""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Mapping

PARENT_VARIABLE = "GNOMON_PARENT_PID"
_PR_SET_PDEATHSIG = 1

ALLOCATOR_ENVIRONMENT: Mapping[str, str] = {
    "MALLOC_MMAP_THRESHOLD_": str(64 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}
"""glibc settings without which large bodies cost the proxy 3.3 times the CPU (mapped and unmapped each time)."""


def die_with_parent() -> None:
    """
    Have the kernel kill this process when the process that started it ends, however it ends.

    Does nothing unless `GNOMON_PARENT_PID` names the parent (a supervisor sets it). If the parent is gone already
    the process exits at once.
    """
    expected = os.environ.get(PARENT_VARIABLE)
    if not expected or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(expected):
        os._exit(1)


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a child that must not outlive this process."""
    return {**os.environ, **(extra or {}), PARENT_VARIABLE: str(os.getpid())}


def tune_allocator() -> None:
    """Start this command again with the allocator's settings, which glibc reads only at start; once."""
    if sys.platform.startswith("linux") and not all(name in os.environ for name in ALLOCATOR_ENVIRONMENT):
        os.execve(sys.executable, [*sys.orig_argv], {**ALLOCATOR_ENVIRONMENT, **os.environ})


def allow_many_files(wanted: int = 65_536) -> int:
    """
    Raise this process's limit of open files to `wanted`, or to as many as it may have; return what is allowed then.

    Shells start processes with 1,024, a tenth of the connections that the proxy takes.
    """
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    if allowed == resource.RLIM_INFINITY or allowed >= wanted:
        return max(allowed, wanted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return wanted
