"""Event loops of blocking code: a coroutine run to its end, a loop that serves in a thread and leaves nothing open."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def run_blocking(work: Coroutine[Any, Any, _Result]) -> _Result:
    """The result of a coroutine, which runs in a loop of its own.

    `asyncio.run` refuses where a loop already runs in the thread; a second thread has none.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, thread_name_prefix="coroutine") as thread:
        return thread.submit(asyncio.run, work).result()


def serve_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, then close it and everything in it; for use as the target of a thread."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        close_loop(loop)


def close_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the tasks of a stopped loop, let their transports close, and close the loop.

    A connection in its TLS handshake belongs to a task of asyncio's own that no server knows of.
    """
    try:
        loop.run_until_complete(_cancel_tasks())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


async def _cancel_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    # A transport that was closed closes its socket in the next iteration of the loop, one with TLS in the one after.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
