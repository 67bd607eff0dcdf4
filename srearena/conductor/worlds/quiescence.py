"""When a process may be forked: it must have one thread and no event loop, because a copy has no other threads.

A lock that another thread held would stay locked in the copy for ever, and a connection or an epoll instance would be
used by both. So a cluster is suspended before (`Cluster.suspend`), and the number of threads is checked.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from pathlib import Path
from time import monotonic

from srearena.conductor.errors import ArenaError

SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Variables that keep numpy's libraries from starting threads of their own at import."""
_EXIT_SECONDS = 10.0
_SET_CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""


def fork_is_safe() -> bool:
    """Whether episodes can be forked on this platform.

    On macOS system libraries start threads of their own, and use in a forked process ends it.
    """
    return sys.platform == "linux"


def require_one_thread() -> None:
    """ArenaError where this process has other threads than the main one."""
    names = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if names:
        raise ArenaError(f"the process cannot be forked while it has other threads: {', '.join(names)}")
    deadline = monotonic() + _EXIT_SECONDS
    while _operating_system_threads() > 1:  # Python's own have been joined, but the kernel may still be ending one
        if monotonic() > deadline:
            raise ArenaError("the process cannot be forked while it has other threads: one of a library")
        os.sched_yield()


def _operating_system_threads() -> int:
    with contextlib.suppress(OSError):
        return len(list(Path("/proc/self/task").iterdir()))
    return 1  # no /proc here


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends, so that none is left as a zombie."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_until_alone() -> None:
    """Wait until every descendant has ended."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
