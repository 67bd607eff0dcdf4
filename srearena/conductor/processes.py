"""The same work on many items, in a few processes that fork from one with everything loaded.

The processes live as long as the work: `max_tasks_per_child` would end them now and then, but under Python 3.11 and
3.12 the pool forgets to start their successors and waits for ever.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from srearena.conductor.errors import ArenaError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_PRELOADED = ["srearena.conductor.verification", "srearena.cluster.in_process"]


def in_processes(work: Callable[[_Item], _Result], items: Sequence[_Item], parallel: int) -> Iterator[_Result]:
    """The results as they come, which is in any order; no process is started where one would do."""
    if parallel <= 1 or len(items) <= 1:
        yield from map(work, items)
        return
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    pool = ProcessPoolExecutor(min(parallel, len(items)), mp_context=context)
    try:
        for future in as_completed([pool.submit(work, item) for item in items]):
            yield future.result()
    except BrokenProcessPool as problem:
        raise ArenaError("a process died under its work (out of memory?): try again with --parallel 1") from problem
    finally:
        pool.shutdown(cancel_futures=True)
