"""The same work on many items, each in a process of its own that forks from one with everything loaded.

A process per item gives back all of its memory, and if it dies, it is known over which item. (A pool that replaces its
processes now and then would do as well, but under Python 3.11 `ProcessPoolExecutor(max_tasks_per_child=...)` forgets
to start the successors and waits for ever.)
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from srearena.conductor.errors import ArenaError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_PRELOADED = ["srearena.conductor.validity.verification", "srearena.cluster.in_process"]


def in_processes(work: Callable[[_Item], _Result], items: Sequence[_Item], parallel: int) -> Iterator[_Result]:
    """The results as they come, which is in any order. What `work` raises ends all of it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    waiting = deque(items)
    running: dict[Connection, tuple[_Item, BaseProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < max(1, parallel):
                item = waiting.popleft()
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_perform, args=(theirs, work, item), daemon=True)
                process.start()
                theirs.close()
                running[ours] = (item, process)
            for ready in [ours for ours in wait(list(running)) if isinstance(ours, Connection)]:
                done, ended = running.pop(ready)
                yield _received(ready, done)
                ended.join()
    finally:
        for _, left in running.values():
            left.terminate()
            left.join()


def _received(connection: Connection, item: object) -> Any:
    try:
        result, error = connection.recv()
    except EOFError:
        raise ArenaError(f"the process died that worked on {item}: is there memory for --parallel so many?") from None
    finally:
        connection.close()
    if error is not None:
        raise error
    return result


def _perform(connection: Connection, work: Callable[[_Item], _Result], item: _Item) -> None:
    try:
        outcome: tuple[Any, Exception | None] = (work(item), None)
    except Exception as error:  # raised anew in the process that asked
        outcome = (None, error)
    connection.send(outcome)
