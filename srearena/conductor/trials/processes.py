"""Runs a function on many items, each in its own process, forked from a server with the modules preloaded.

A process per item releases all of its memory, and if it dies, the item is known. (A pool with worker recycling would do
as well, but under Python 3.11 `ProcessPoolExecutor(max_tasks_per_child=...)` can deadlock instead of starting new
workers.)
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from srearena.conductor.errors import ArenaError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_PRELOADED = ["srearena.conductor.validity.verification", "srearena.cluster.in_process"]


def in_processes(
    work: Callable[[_Item], _Result], items: Sequence[_Item], parallel: int
) -> Generator[_Result, None, None]:
    """Yield the results in the order of completion. An exception of `work` ends the iteration."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    waiting = deque(items)
    running: dict[Connection, tuple[_Item, BaseProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < max(1, parallel):
                item = waiting.popleft()
                receiver, sender = context.Pipe(duplex=False)
                worker = context.Process(target=_perform, args=(sender, work, item), daemon=True)
                with _safe_path():
                    worker.start()
                sender.close()
                running[receiver] = (item, worker)
            for ready in [receiver for receiver in wait(list(running)) if isinstance(receiver, Connection)]:
                finished, process = running.pop(ready)
                yield _receive(ready, finished)
                process.join()
    finally:
        for _, process in running.values():
            process.terminate()
            process.join()


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep the working directory off the module path of the server, whose interpreter starts with `-c`."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def with_signals(work: Callable[[_Item], _Result], item: _Item) -> _Result:
    """Run in a child process: ignore Ctrl-C, which the parent handles, and clean up on SIGTERM."""

    def terminate(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, terminate)
    return work(item)


def _receive(connection: Connection, item: object) -> Any:
    try:
        result, error = connection.recv()
    except EOFError:
        raise ArenaError(f"the process for {item} died: is there enough memory for this --parallel?") from None
    finally:
        connection.close()
    if error is not None:
        raise error
    return result


def _perform(connection: Connection, work: Callable[[_Item], _Result], item: _Item) -> None:
    try:
        outcome: tuple[Any, Exception | None] = (work(item), None)
    except Exception as error:  # raised again in the parent process
        error.add_note(traceback.format_exc())
        outcome = (None, error)
    try:
        connection.send(outcome)
    except Exception as problem:  # an exception or a result that cannot be pickled
        failure = outcome[1] or problem
        connection.send((None, ArenaError(f"{type(failure).__name__}: {failure}")))
