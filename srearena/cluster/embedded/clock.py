"""Virtual time: an event queue, and coroutines that wait on it.

Everything that happens in a cluster happens in a callback of this queue or in an API request that runs between two
of them. Time moves only here: from one event to the next, never by itself and never by the wall clock (`pacing`
decides how far the queue may run). Events at the same instant run in the order in which they were scheduled, which
is what makes two runs with the same seed equal.

Programs, shells and other things with a flow of their own are coroutines: `clock.spawn(coroutine)` drives one, and
inside it `await clock.sleep(5)` or `await signal.wait()` hand control back to the queue.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from srearena.cluster.embedded.durations import format_micro_time, format_time

T = TypeVar("T")


class Timer:
    """A scheduled callback; cancelling it is cheap and may be done at any time."""

    __slots__ = ("arguments", "callback", "when")

    def __init__(self, when: float, callback: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self.when = when
        self.callback: Callable[..., object] | None = callback
        self.arguments = arguments

    @property
    def pending(self) -> bool:
        return self.callback is not None

    def cancel(self) -> None:
        self.callback = None
        self.arguments = ()


class Clock:
    """The queue of future events, and the instant it has reached (`now`, in seconds since the epoch)."""

    def __init__(self, start: float) -> None:
        self.now = start
        self._queue: list[tuple[float, int, Timer]] = []
        self._sequence = 0
        self.on_earlier: Callable[[], None] | None = None
        """Called when an event was scheduled before all others, so that a sleeping driver can wake."""
        self._tasks: set[Task[Any]] = set()
        self.external_waits: dict[Callable[[], object], float] = {}
        """The external clients that wait for an event: the callback that gives up, and the start of the wait."""
        self.waited = 0.0
        """The total time they have waited."""

    def at(self, when: float, callback: Callable[..., object], *arguments: Any) -> Timer:
        if when < self.now:
            when = self.now
        timer = Timer(when, callback, arguments)
        earlier = not self._queue or when < self._queue[0][0]
        self._sequence += 1
        heapq.heappush(self._queue, (when, self._sequence, timer))
        if earlier and self.on_earlier is not None:
            self.on_earlier()
        return timer

    def after(self, delay: float, callback: Callable[..., object], *arguments: Any) -> Timer:
        return self.at(self.now + delay, callback, *arguments)

    def next_event_at(self) -> float | None:
        """When the next live event is due; None when nothing is planned."""
        while self._queue and not self._queue[0][2].pending:
            heapq.heappop(self._queue)
        return self._queue[0][0] if self._queue else None

    def run_until(self, moment: float, should_pause: Callable[[], bool] | None = None) -> bool:
        """Run the events due up to `moment` and stop there. False if `should_pause` interrupted earlier."""
        queue = self._queue
        while queue and queue[0][0] <= moment:
            when, _, timer = heapq.heappop(queue)
            callback, arguments = timer.callback, timer.arguments
            if callback is None:
                continue
            self.now = when
            timer.cancel()
            callback(*arguments)
            if should_pause is not None and should_pause():
                return False
        self.now = max(self.now, moment)
        return True

    def advance(self, seconds: float) -> None:
        self.run_until(self.now + seconds)

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> Task[T]:
        """Drive a coroutine on this clock, starting at the present instant but not before the caller returns."""
        task = Task(self, coroutine)
        self.after(0, task.resume)
        return task

    def sleep(self, seconds: float) -> Awaitable[None]:
        return _Sleep(self, seconds)

    def want(self, give_up: Callable[[], object]) -> None:
        """Register an external client that waits; see `pacing` for fast-forwarding on its behalf."""
        self.external_waits[give_up] = self.now
        if self.on_earlier is not None:
            self.on_earlier()

    def served(self, give_up: Callable[[], object]) -> None:
        """End the wait. Called from an event of the queue, so that fast-forwarding stops at that instant."""
        since = self.external_waits.pop(give_up, None)
        if since is not None:
            self.waited += self.now - since

    def task_began(self, task: Task[Any]) -> None:
        self._tasks.add(task)

    def task_ended(self, task: Task[Any]) -> None:
        self._tasks.discard(task)

    def close(self) -> None:
        """Drop all events and end all tasks."""
        self._queue.clear()
        while self._tasks:
            self._tasks.pop().abandon()
        self._queue.clear()

    def timestamp(self) -> str:
        """The present instant as Kubernetes writes it in metav1.Time: whole seconds, UTC."""
        return format_time(self.now)

    def micro_timestamp(self) -> str:
        """The present instant as Kubernetes writes it in metav1.MicroTime."""
        return format_micro_time(self.now)


class Cancelled(BaseException):
    """Thrown into a coroutine whose task was cancelled (a killed process, a client that went away)."""


class _Suspension:
    """What a coroutine yields to its task: arms the wake-up, and can take it back."""

    def arm(self, task: Task[Any]) -> None:
        raise TypeError(f"{type(self).__name__} cannot be awaited")

    def disarm(self, task: Task[Any]) -> None:
        """Forget the task; it was cancelled."""


class _Sleep(_Suspension):
    __slots__ = ("_clock", "_timer", "seconds")

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self.seconds = seconds
        self._timer: Timer | None = None

    def __await__(self) -> Generator[_Suspension, Any, None]:
        yield self

    def prolong(self, seconds: float) -> None:
        self.seconds += seconds

    def arm(self, task: Task[Any]) -> None:
        self._timer = self._clock.after(max(0.0, self.seconds), task.resume)

    def disarm(self, task: Task[Any]) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Unfinished(Generic[T]):
    """A coroutine that `begin` has started and that now waits: await this to continue it."""

    __slots__ = ("_coroutine", "_owed", "_suspension")

    def __init__(self, coroutine: Coroutine[Any, Any, T], suspension: _Suspension, owed: float) -> None:
        self._coroutine = coroutine
        self._suspension = suspension
        self._owed = owed
        """Sleep that was skipped and is still due."""

    def __await__(self) -> Generator[_Suspension, Any, T]:
        suspension = self._suspension
        if isinstance(suspension, _Sleep):
            suspension.prolong(self._owed)
        try:
            while True:
                try:
                    yield suspension
                except GeneratorExit:
                    self._coroutine.close()
                    raise
                except BaseException as thrown:
                    suspension = self._coroutine.throw(thrown)
                else:
                    suspension = self._coroutine.send(None)
        except StopIteration as stop:
            result: T = stop.value
            return result


def begin(coroutine: Coroutine[Any, Any, T], patience: float) -> T | Unfinished[T]:
    """Run a coroutine at once, without a task: its result, if it only sleeps, and no longer than `patience` in all.

    What it does after such a short sleep happens a little early. Meant for very frequent calls that mostly return at
    once; a longer one is returned to be awaited.
    """
    slept = 0.0
    try:
        while True:
            suspension = coroutine.send(None)
            if not isinstance(suspension, _Sleep) or slept + suspension.seconds > patience:
                return Unfinished(coroutine, suspension, slept)
            slept += suspension.seconds
    except StopIteration as stop:
        result: T = stop.value
        return result


class Signal(Generic[T]):
    """A one-shot event; coroutines and callbacks can wait for it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.is_set = False
        self._value: T | None = None
        self._waiting: list[Callable[[], object]] = []

    @property
    def value(self) -> T:
        if not self.is_set:
            raise RuntimeError("the signal has no value yet")
        return self._value  # type: ignore[return-value]

    def set(self, value: T) -> None:
        if self.is_set:
            return
        self.is_set, self._value = True, value
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            self.clock.after(0, callback)

    def then(self, callback: Callable[[], object]) -> None:
        if self.is_set:
            self.clock.after(0, callback)
        else:
            self._waiting.append(callback)

    def forget(self, callback: Callable[[], object]) -> None:
        self._waiting = [c for c in self._waiting if c != callback]

    async def wait(self, timeout: float | None = None) -> bool:
        """True once the signal is set, False if `timeout` virtual seconds pass first."""
        if not self.is_set:
            await _AnySignal(self.clock, (self,), timeout)
        return self.is_set


class _AnySignal(_Suspension):
    """Waits for the first of several signals, or a timeout."""

    __slots__ = ("_clock", "_signals", "_timeout", "_timer", "_wake")

    def __init__(self, clock: Clock, signals: tuple[Signal[Any], ...], timeout: float | None) -> None:
        self._clock = clock
        self._signals = signals
        self._timeout = timeout
        self._timer: Timer | None = None
        self._wake: Callable[[], object] | None = None

    def __await__(self) -> Generator[_Suspension, Any, None]:
        yield self

    def arm(self, task: Task[Any]) -> None:
        def wake() -> None:
            self.disarm(task)
            task.resume()

        self._wake = wake
        for signal in self._signals:
            signal.then(wake)
        if self._timeout is not None:
            self._timer = self._clock.after(self._timeout, wake)

    def disarm(self, task: Task[Any]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._wake is not None:
            for signal in self._signals:
                signal.forget(self._wake)


async def first_of(clock: Clock, *signals: Signal[Any], timeout: float | None = None) -> Signal[Any] | None:
    """The first of the signals to be set, or None after `timeout` virtual seconds."""
    if not any(signal.is_set for signal in signals):
        await _AnySignal(clock, signals, timeout)
    return next((signal for signal in signals if signal.is_set), None)


class Task(Generic[T]):
    """A coroutine in flight. `done` is set with its result when it ends, however it ends."""

    def __init__(self, clock: Clock, coroutine: Coroutine[Any, Any, T]) -> None:
        self.clock = clock
        self.done: Signal[T | None] = Signal(clock)
        self._coroutine = coroutine
        self._suspension: _Suspension | None = None
        self._running = False
        self._ended = False
        self._cancel_requested = False
        clock.task_began(self)

    def resume(self) -> None:
        if not self._ended and not self._running:
            self._suspension = None
            self._advance(lambda: self._coroutine.send(None))

    def cancel(self) -> None:
        """Cancel the coroutine where it waits; its `finally` blocks run now."""
        if self._ended:
            return
        if self._running:
            self._cancel_requested = True
            return
        if getattr(self._coroutine, "cr_frame", self) is None:
            # The coroutine was closed from outside: its world is being garbage-collected.
            self._end(None)
            return
        if self._suspension is not None:
            self._suspension.disarm(self)
        self._advance(lambda: self._coroutine.throw(Cancelled()))

    def _advance(self, move: Callable[[], Any]) -> None:
        self._running = True
        try:
            suspension = move()
        except StopIteration as stop:
            self._end(stop.value)
            return
        except Cancelled:
            self._end(None)
            return
        finally:
            self._running = False
        if self._cancel_requested:
            self._suspension = None
            self._cancel_requested = False
            self._advance(lambda: self._coroutine.throw(Cancelled()))
            return
        self._suspension = suspension
        suspension.arm(self)

    def abandon(self) -> None:
        """Close the coroutine where it waits and ignore its errors."""
        self._ended = True
        with contextlib.suppress(Exception, Cancelled):
            self._coroutine.close()

    def _end(self, result: T | None) -> None:
        self._ended = True
        self.clock.task_ended(self)
        self.done.set(result)

    async def join(self) -> T | None:
        await self.done.wait()
        return self.done.value
