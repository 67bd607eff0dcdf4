"""Running a coroutine to its end from blocking code, whether or not an event loop runs in the calling thread."""

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
