"""Forks of a running cluster: the whole process is copied, with the world, its open requests and its virtual time.

The copy is made in the thread of the event loop, which stands still in the original until the copy has ended. So the
two never serve the same sockets at once, addresses and credentials stay valid in the copy, and whatever happens there
leaves no trace in the original.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import pickle
import selectors
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class ForkError(Exception):
    """The copy ended without a result."""


class RenewableSelector(selectors.BaseSelector):
    """A selector that can be replaced by a new one with the same registrations.

    An epoll instance is shared across a fork: without a new one, the copy would change what the original waits for.
    """

    def __init__(self) -> None:
        self._inner = selectors.DefaultSelector()

    def renew(self) -> None:
        old, self._inner = self._inner, selectors.DefaultSelector()
        for key in list(old.get_map().values()):
            self._inner.register(key.fileobj, key.events, key.data)
        old.close()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.modify(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._inner.select(timeout)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()


def in_fork(work: Callable[[], T], selector: RenewableSelector) -> T | None:
    """Fork, run `work` in a thread of the copy, and return its result; ForkError where there is none.

    To be called in the thread of the event loop. It returns twice: in the original with the result, once the copy has
    ended, and in the copy at once, where the loop then serves the requests of `work` until the process exits.
    """
    receiver, sender = os.pipe()
    loop = asyncio.get_running_loop()
    child = os.fork()
    if child == 0:
        gc.freeze()  # a collection would write to every page of the original, and copy it
        os.close(receiver)
        asyncio.events._set_running_loop(loop)  # a fork resets which loop runs
        selector.renew()
        threading.Thread(target=_run, args=(work, sender), name="forked").start()
        return None
    os.close(sender)
    with os.fdopen(receiver, "rb") as stream:
        content = stream.read()
    _, status = os.waitpid(child, 0)
    if not content:
        raise ForkError(f"the copy of the process ended with status {os.waitstatus_to_exitcode(status)}")
    result, error = pickle.loads(content)  # written by a copy of this very process
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


def _run(work: Callable[[], Any], sender: int) -> None:
    """Send the result and end the process at once: buffers, exit handlers and files belong to the original."""
    try:
        try:
            outcome: tuple[Any, BaseException | None] = (work(), None)
        except BaseException as error:
            outcome = (None, ForkError(f"{type(error).__name__}: {error}"))
        with contextlib.suppress(OSError), os.fdopen(sender, "wb") as stream:
            stream.write(pickle.dumps(outcome))
    finally:
        os._exit(0)
