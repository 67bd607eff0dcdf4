"""Waiting for something that happens in virtual time, from either side of it.

Requests from outside are answered in the server's asyncio loop; those from pods are answered on the cluster's own
clock (see `in_cluster`), and `IN_WORLD` tells a handler which of the two it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from srearena.cluster.embedded.clock import Clock, Signal
from srearena.cluster.embedded.registry.admission.chain import AdmissionPending
from srearena.cluster.embedded.registry.conversion_webhooks import Answers, with_answers

T = TypeVar("T")

IN_WORLD: ContextVar[bool] = ContextVar("in_world", default=False)


async def happened(signal: Signal[T]) -> None:
    """Wait until the signal is set."""
    if signal.is_set:
        return
    if IN_WORLD.get():
        await signal.wait()
        return
    woken = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    signal.then(wake)
    try:
        await woken
    finally:
        signal.forget(wake)


class Wake(Protocol):
    """What a watcher is woken by; an `asyncio.Event` for clients outside."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool: ...


class VirtualWake:
    """The same for a client inside: it can be waited for on the clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._signal: Signal[None] = Signal(clock)

    def set(self) -> None:
        self._signal.set(None)

    def clear(self) -> None:
        self._signal = Signal(self._clock)

    def is_set(self) -> bool:
        return self._signal.is_set

    async def wait(self, timeout: float) -> bool:
        return await self._signal.wait(timeout)


async def answered(signal: Signal[T]) -> None:
    """Wait on behalf of an external client: with fast-forwarding on, time jumps to the event."""
    if IN_WORLD.get() or signal.is_set:
        await happened(signal)
        return
    clock = signal.clock

    def give_up() -> None:
        """Nothing to take back: the client gives up by itself."""

    clock.want(give_up)
    signal.then(lambda: clock.served(give_up))
    try:
        await happened(signal)
    finally:
        clock.served(give_up)


async def completed(clock: Clock, work: Coroutine[Any, Any, T], *, fast_forward: bool = True) -> T | None:
    """Run work of the simulated world to its end; if the client leaves, so does the work. None where it was ended.

    With fast-forwarding on, time jumps to the end of the work, except without `fast_forward`.
    """
    task = clock.spawn(work)
    if fast_forward and not IN_WORLD.get():
        clock.want(task.cancel)
        task.done.then(lambda: clock.served(task.cancel))
    try:
        await happened(task.done)
    finally:
        clock.served(task.cancel)
        task.cancel()
    return task.done.value


async def settled(attempt: Callable[[], T]) -> T:
    """Do what may have to wait for webhooks of admission or conversion, as often as it takes."""
    answers: Answers = {}
    while True:
        try:
            with with_answers(answers):
                return attempt()
        except AdmissionPending as pending:
            await answered(pending.ready)
