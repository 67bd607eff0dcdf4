"""exec and attach: a terminal or three pipes between a client's connection and a process in a container.

Errors that the API itself finds are answered before the upgrade, as plain HTTP. What the node finds comes afterwards,
as a Status on the error channel, because a real server has upgraded the connection by the time it asks the kubelet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import orjson

from srearena.cluster.embedded.api.pod_containers import chosen_container, reachable_agent, stored_pod
from srearena.cluster.embedded.api.requests import Disconnected, Request
from srearena.cluster.embedded.api.sockets import (
    CHANNEL_PROTOCOLS,
    ERROR,
    RESIZE,
    STATUS_PROTOCOLS,
    STDERR,
    STDIN,
    STDOUT,
    Socket,
)
from srearena.cluster.embedded.clock import Signal
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.machine.containers.container import Container, RuntimeFailure
from srearena.cluster.embedded.machine.files.streams import CHUNK, Pipe
from srearena.cluster.embedded.machine.processes.terminal import Terminal
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of
from srearena.cluster.embedded.registry.errors import ApiError, BadRequest, InternalError
from srearena.cluster.embedded.registry.resources import Resource

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

UPGRADE_REQUIRED: Final = "Upgrade request required"
_REFUSAL_SECONDS: Final = 0.05
_SUCCESS: Final[Obj] = {"metadata": {}, "status": "Success"}


@dataclass(frozen=True, slots=True)
class StreamOptions:
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool
    command: tuple[str, ...] = ()


@dataclass(slots=True)
class Session:
    """One command, or one attachment, and its ends."""

    outputs: list[tuple[int, Pipe]]
    ended: Signal[Any]
    status: Callable[[], Obj]
    stdin: Pipe | None = None
    terminal: Terminal | None = None
    release: Callable[[], object] = lambda: None
    """Called when the client is done with it, or gone."""

    @property
    def has_all_input(self) -> bool:
        """Whether the client has nothing more to say and only waits."""
        return self.terminal is None and (self.stdin is None or not self.stdin.writer_open)


def stream_options(request: Request) -> StreamOptions:
    query = request.query
    options = StreamOptions(
        query.flag("stdin"),
        query.flag("stdout"),
        query.flag("stderr"),
        query.flag("tty"),
        tuple(query.all("command")),
    )
    if not (options.stdin or options.stdout or options.stderr):
        raise BadRequest("you must specify at least one of stdin, stdout, stderr")
    if options.tty and options.stderr:
        raise BadRequest("tty and stderr cannot both be true")
    return options


async def exec_(backend: Backend, socket: Socket) -> None:
    await _serve(backend, socket, "exec", _exec_session)


async def attach(backend: Backend, socket: Socket) -> None:
    await _serve(backend, socket, "attach", _attach_session)


async def _serve(
    backend: Backend,
    socket: Socket,
    action: str,
    open_session: Callable[[Backend, Container, StreamOptions], Session],
) -> None:
    request = socket.request
    pod, name, options = _checked(backend, request)
    if not socket.choose(CHANNEL_PROTOCOLS):
        raise BadRequest("unable to negotiate a subprotocol: none of those offered is supported")
    await socket.accept()
    first = STDOUT if options.stdout else STDERR if options.stderr else ERROR
    path = f"/{action}/{request.info.namespace}/{name_of(pod)}/{name}?{_kubelet_query(options)}"
    try:
        container = _running(backend, pod, name, path)
    except ApiError as error:
        # kubectl throws away what comes before it has made its streams; a real server has to ask the kubelet first.
        await asyncio.sleep(_REFUSAL_SECONDS)
        await socket.send(first, b"")
        await _end(socket, error.status())
        return
    # The client takes this to mean that the connection stands.
    await socket.send(first, b"")
    try:
        session = open_session(backend, container, options)
    except ApiError as error:
        await _end(socket, error.status())
        return
    await _converse(socket, session)


def _checked(backend: Backend, request: Request) -> tuple[Obj, str, StreamOptions]:
    """The pod, the container and the streams that a request is about."""
    pod = stored_pod(backend, request.info.namespace, request.info.name)
    options = stream_options(request)
    if request.info.subresource == "exec" and not options.command:
        raise BadRequest("you must specify at least one command for the container")
    name = chosen_container(pod, request.query.text("container"))
    if not dig(pod, "spec", "nodeName"):
        raise BadRequest(f"pod {name_of(pod)} does not have a host assigned")
    return pod, name, options


async def upgrade_required(backend: Backend, request: Request, row: Resource) -> None:
    """exec or attach without an upgrade: what is wrong with the request comes first, then that it needs one."""
    _checked(backend, request)
    raise BadRequest(UPGRADE_REQUIRED)


def _kubelet_query(options: StreamOptions) -> str:
    """How the kubelet is asked for these streams."""
    flags = {"error": options.stderr, "input": options.stdin, "output": options.stdout, "tty": options.tty}
    return urlencode(
        [*(("command", word) for word in options.command), *((name, "1") for name, on in flags.items() if on)]
    )


def _running(backend: Backend, pod: Obj, name: str, action: str) -> Container:
    try:
        agent = reachable_agent(backend, pod, action)
    except ApiError as error:
        raise InternalError(f"error sending request: {error.message.replace('Get', 'Post', 1)}") from None
    view = agent.record(pod, name)
    if view is None or not view.running or view.container is None:
        missing = f"container not found ({quoted(name)})"
        if action.startswith("/attach/") and view is None:
            missing = f"container {name} not found in pod {name_of(pod)}_{namespace_of(pod)}"
        raise InternalError(f"unable to upgrade connection: {missing}")
    return view.container


def _exec_session(backend: Backend, container: Container, options: StreamOptions) -> Session:
    clock = backend.world.clock
    terminal = Terminal(clock) if options.tty else None
    stdin, stdout, stderr = Pipe(clock), Pipe(clock), Pipe(clock)
    # Complaints first where both are there at once: a client that has all its data (kubectl cp) goes at once.
    outputs = [(STDERR, stderr)] * options.stderr + [(STDOUT, stdout)] * options.stdout
    try:
        if terminal is not None:
            outputs = [(STDOUT, terminal.output)]
            process = container.exec(options.command, tty=terminal)
        else:
            process = container.exec(
                options.command,
                stdin=stdin.ends()[0] if options.stdin else None,
                stdout=stdout.ends()[1] if options.stdout else None,
                stderr=stderr.ends()[1] if options.stderr else None,
            )
    except RuntimeFailure as failure:
        raise InternalError(f"error executing command in container: {failure.message}") from None

    def release() -> None:
        """A client that goes away closes the pipes, or hangs up the terminal; the process learns of it by that."""
        if terminal is not None:
            terminal.hang_up()
            return
        stdin.close_writer()
        stdout.close_reader()
        stderr.close_reader()

    return Session(
        outputs,
        process.done,
        lambda: _exit_status(process.done.value, options.command),
        None if terminal or not options.stdin else stdin,
        terminal,
        release,
    )


def _attach_session(backend: Backend, container: Container, options: StreamOptions) -> Session:
    clock = backend.world.clock
    pipes = {"stdout": Pipe(clock), "stderr": Pipe(clock)}

    def tell(stream: str, data: bytes) -> None:
        pipe = pipes[stream]
        if pipe.reader_open and pipe.room >= len(data):
            pipe.write_now(data)  # what a slow reader has no room for is in the log all the same

    detach = container.log.attach(tell)

    def release() -> None:
        detach()
        if options.stdin and container.config.stdin_once and container.stdin is not None:
            container.stdin.close_writer()

    outputs = [(STDOUT, pipes["stdout"])] * options.stdout + [(STDERR, pipes["stderr"])] * options.stderr
    return Session(
        outputs,
        container.done,
        lambda: _SUCCESS,
        container.stdin if options.stdin else None,
        container.terminal,
        release,
    )


def _exit_status(code: int, command: tuple[str, ...]) -> Obj:
    if code == 0:
        return _SUCCESS
    text = f"error executing command [{' '.join(command)}], exit code {code}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {text}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


async def _converse(socket: Socket, session: Session) -> None:
    """Carry bytes both ways until the command ends or the client does."""
    wake = asyncio.Event()
    clock = session.ended.clock
    listening = asyncio.create_task(_listen(socket, session, wake))

    def give_up() -> None:
        listening.cancel()

    def stir() -> None:
        """There is something for the client: time need not hurry on before it has it."""
        clock.served(give_up)
        wake.set()

    for _, pipe in session.outputs:
        pipe.watch(stir)
    session.ended.then(stir)
    try:
        while True:
            wake.clear()
            if await _show(socket, session):
                continue
            if session.ended.is_set:
                break
            if listening.done():
                return
            if session.has_all_input:
                clock.want(give_up)
            await wake.wait()
            clock.served(give_up)
        await _end(socket, session.status())
    except Disconnected:
        return
    finally:
        clock.served(give_up)
        listening.cancel()
        for _, pipe in session.outputs:
            pipe.watch(None)
        session.ended.forget(stir)
        session.release()


async def _show(socket: Socket, session: Session) -> bool:
    """Send what the command has written; whether there was anything."""
    shown = False
    for channel, pipe in session.outputs:
        data = pipe.read_now(CHUNK)
        if data:
            await socket.send(channel, data)
            shown = True
    return shown


async def _listen(socket: Socket, session: Session, wake: asyncio.Event) -> None:
    """Take what the client sends, until it is gone."""
    try:
        while (message := await socket.receive()) is not None:
            channel, data = message
            if channel == STDIN and data:
                await _feed(session, data)
            elif channel == RESIZE:
                _resize(session, data)
            elif socket.closes(channel) and data[:1] == bytes((STDIN,)) and session.stdin is not None:
                session.stdin.close_writer()
                wake.set()
    finally:
        wake.set()


async def _feed(session: Session, data: bytes) -> None:
    if session.terminal is not None:
        session.terminal.feed(data)
        return
    pipe = session.stdin
    if pipe is None:
        return
    room = asyncio.Event()

    def stir() -> None:
        if pipe.room or not (pipe.reader_open and pipe.writer_open):
            pipe.clock.served(room.set)
            room.set()

    try:
        while data and pipe.reader_open and pipe.writer_open:
            room.clear()
            data = data[pipe.write_now(data) :]
            if data:
                pipe.watch(stir)
                pipe.clock.want(room.set)
                await room.wait()
    finally:
        pipe.clock.served(room.set)
        pipe.watch(None)


def _resize(session: Session, data: bytes) -> None:
    try:
        size = orjson.loads(data)
        columns, rows = int(size["Width"]), int(size["Height"])
    except (ValueError, TypeError, KeyError):
        return
    if session.terminal is not None and 0 < columns < 65536 and 0 < rows < 65536:
        session.terminal.resize(columns, rows)


async def _end(socket: Socket, status: Obj) -> None:
    if socket.protocol.replace("base64.", "") in STATUS_PROTOCOLS:
        await socket.send(ERROR, orjson.dumps(status))
    elif status.get("status") != "Success":
        # Before version 4 a success is silent, and a failure is its message.
        await socket.send(ERROR, str(status.get("message", "")).encode())
    await socket.close()
