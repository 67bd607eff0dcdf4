"""Container logs: `pods/log`, once or with follow.

Which attempt of a container is shown follows from the pod's status, as the kubelet chooses it, and so do the words
for a container that has nothing to show yet. Time stamps and `since` are in virtual time, like the lines themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.api.node_agent import ContainerView
from srearena.cluster.embedded.api.pod_containers import (
    chosen_container,
    container_status,
    reachable_agent,
    stored_pod,
)
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.sockets import BINARY, Socket
from srearena.cluster.embedded.api.waiting import IN_WORLD
from srearena.cluster.embedded.durations import TimeError, format_time, parse_time
from srearena.cluster.embedded.machine.containers.log import LogLine
from srearena.cluster.embedded.objects import Obj, dig, name_of
from srearena.cluster.embedded.registry.errors import BadRequest, FieldError, Invalid
from srearena.cluster.embedded.registry.resources import Resource

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

TEXT: Final = "text/plain"
_STREAMS: Final = ("All", "Stdout", "Stderr")
_WAITING: Final = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


@dataclass(slots=True)
class LogOptions:
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: float | None = None
    tail: int | None = None
    limit: int | None = None
    stream: str = "All"


async def get(backend: Backend, request: Request, row: Resource) -> None:
    """Answer `kubectl logs`."""
    opened = _opened(backend, request)
    if opened is None:
        await request.reply(204, b"", TEXT)  # never started, so there is no log
        return
    view, printer, follow = opened
    start = view.log.end
    text = printer.first(view.log.lines())
    if not follow or not view.running or IN_WORLD.get():
        await request.reply(200, text, TEXT)
        return
    await request.start(200, TEXT)
    await request.write(text)
    await _follow(request, view, printer, start, request.write)
    await request.finish()


async def stream(backend: Backend, socket: Socket) -> None:
    """The same over a WebSocket, in messages of any size."""
    opened = _opened(backend, socket.request)
    if not socket.choose((BINARY,)):
        raise BadRequest("unable to negotiate a subprotocol: none of those offered is supported")
    await socket.accept()
    if opened is not None:
        view, printer, follow = opened
        start = view.log.end
        await socket.send_raw(printer.first(view.log.lines()))
        if follow and view.running:
            await _follow(socket.request, view, printer, start, socket.send_raw)
    await socket.close()


def _opened(backend: Backend, request: Request) -> tuple[ContainerView, _Printer, bool] | None:
    """The log that a request asks for, its printer, and whether to follow; None for a pod that is on no node."""
    pod = stored_pod(backend, request.info.namespace, request.info.name)
    options = log_options(request, name_of(pod), backend.world.clock.now)
    container = chosen_container(pod, request.query.text("container"))
    if not dig(pod, "spec", "nodeName"):
        return None
    action = f"/containerLogs/{request.info.namespace}/{name_of(pod)}/{container}"
    agent = reachable_agent(backend, pod, action)
    previous = _shows_previous(pod, container, options.previous)
    view = agent.record(pod, container, previous=previous)
    if view is None:
        raise BadRequest(f'container "{container}" in pod "{name_of(pod)}" is not available')
    return view, _Printer(options), options.follow


async def _follow(
    request: Request, view: ContainerView, printer: _Printer, start: int, write: Callable[[bytes], Awaitable[None]]
) -> None:
    wake = asyncio.Event()
    container = view.container
    detach = view.log.attach(lambda stream, data: wake.set())
    forget = request.connection.on_lost(wake.set) if request.connection else None
    if container is not None:
        container.done.then(wake.set)
    try:
        while True:
            wake.clear()
            text = printer.more(view.log.lines(start))
            start = view.log.end
            if text:
                await write(text)
            if printer.full:
                return
            if view.log.end > start:
                continue
            if not view.running or request.gone:
                return
            await wake.wait()
    finally:
        detach()
        if container is not None:
            container.done.forget(wake.set)
        if forget is not None:
            forget()


class _Printer:
    """Turns lines into what the options ask for, and knows when enough has been said."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._left = options.limit
        self._fresh = True
        """Whether the next entry begins a line; the runtime cuts overlong ones into several."""

    @property
    def full(self) -> bool:
        return self._left == 0

    def first(self, lines: list[LogLine]) -> bytes:
        """What there is already: only this is cut to its tail."""
        chosen = self._chosen(lines)
        tail = self._options.tail
        if tail is not None:
            chosen = chosen[len(chosen) - tail :] if tail < len(chosen) else chosen
        return self._text(chosen)

    def more(self, lines: list[LogLine]) -> bytes:
        return self._text(self._chosen(lines))

    def _chosen(self, lines: Iterable[LogLine]) -> list[LogLine]:
        options = self._options
        wanted = options.stream.lower()
        return [
            line
            for line in lines
            if (options.since is None or line.time >= options.since) and wanted in ("all", line.stream)
        ]

    def _text(self, lines: list[LogLine]) -> bytes:
        parts: list[bytes] = []
        for line in lines:
            if self._options.timestamps and self._fresh:
                parts.append(_nano_time(line.time).encode() + b" ")
            parts.append(line.text if line.partial else line.text + b"\n")
            self._fresh = not line.partial
        text = b"".join(parts)
        if self._left is not None:
            text = text[: self._left]
            self._left -= len(text)
        return text


def _nano_time(moment: float) -> str:
    nanos = round(moment % 1 * 1e6) * 1000
    return f"{format_time(moment)[:-1]}.{min(nanos, 999_999_999):09}Z"


def _shows_previous(pod: Obj, container: str, previous: bool) -> bool:
    """Whether the attempt before the latest is to be shown; BadRequest where there is nothing to show."""
    status = container_status(pod, container)
    who = f'container "{container}" in pod "{name_of(pod)}"'
    if status is None:
        raise BadRequest(f"{who} is not available")
    state = status.get("state") or {}
    last = dig(status, "lastState", "terminated") or {}
    if previous:
        if not last.get("containerID"):
            raise BadRequest(f'previous terminated container "{container}" in pod "{name_of(pod)}" not found')
        # A container that waits to be started again has no newer attempt than the one that ended.
        return not state.get("waiting")
    if state.get("running"):
        return False
    if terminated := state.get("terminated"):
        if not terminated.get("containerID") and not last.get("containerID"):
            raise BadRequest(f"{who} is terminated")
        return False
    if last:
        if not last.get("containerID"):
            raise BadRequest(f"{who} is terminated")
        return False
    reason = dig(state, "waiting", "reason", default="")
    if "waiting" not in state:
        raise BadRequest(f"{who} is waiting to start - no logs yet")
    raise BadRequest(f"{who} is waiting to start: {_WAITING.get(reason, reason)}")


def log_options(request: Request, pod: str, now: float) -> LogOptions:
    query = request.query
    tail, limit, seconds = query.number("tailLines"), query.number("limitBytes"), query.number("sinceSeconds")
    stream, time = query.text("stream") or "All", query.text("sinceTime")
    problems: list[FieldError] = []
    if tail is not None and tail < 0:
        problems.append(FieldError.invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        problems.append(FieldError.invalid("limitBytes", limit, "must be greater than 0"))
    if seconds is not None and time:
        both = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        problems.append(FieldError.forbidden("", both))
    elif seconds is not None and seconds < 1:
        problems.append(FieldError.invalid("sinceSeconds", seconds, "must be greater than 0"))
    if stream not in _STREAMS:
        problems.append(FieldError.not_supported("stream", stream, _STREAMS))
    elif stream != "All" and tail is not None:
        both = "`tailLines` and specific `stream` are mutually exclusive for now"
        problems.append(FieldError.forbidden("", both))
    if problems:
        raise Invalid("PodLogOptions", pod, problems)
    since = now - seconds if seconds is not None else None
    if time:
        try:
            since = parse_time(time)
        except TimeError as error:
            raise BadRequest(str(error)) from None
    return LogOptions(
        query.flag("follow"), query.flag("previous"), query.flag("timestamps"), since, tail, limit, stream
    )
