"""Processes: what runs in a container, with its descriptors, identity, signals and children.

A process is one coroutine (its main thread) on the virtual clock, plus threads it spawns. It ends exactly once, with
an exit status as `wait` reports it (128 + n after signal n), and then its resources are released. Process 1 of a
namespace is special as on Linux: signals without a handler are ignored, except SIGKILL from outside.

Computing costs virtual time (`spend`), so that no program can loop forever at one instant; one that keeps computing
without ever waiting is simulated ever more coarsely.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from signal import Signals
from typing import TYPE_CHECKING, Any, TypeVar

from srearena.cluster.embedded.clock import Signal, Task
from srearena.cluster.embedded.machine.files.file_view import FileView
from srearena.cluster.embedded.machine.files.streams import CHUNK, Change, NullFile, OpenFile, os_error
from srearena.cluster.embedded.machine.processes.cpu_cost import STEP_COST, Effort
from srearena.cluster.embedded.machine.processes.credentials import Credentials
from srearena.cluster.embedded.machine.processes.execution import Entry, ExecError, Exit, Replaced
from srearena.cluster.embedded.machine.processes.signals import IGNORED_BY_DEFAULT, STOPPING

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.containers.container import Container
    from srearena.cluster.embedded.machine.files.filesystem import FileStat, Filesystem

T = TypeVar("T")
Handler = Callable[[int], object]

DEFAULT_NOFILE = 1048576
PROCESS_MEMORY = 400 * 1024
"""The default resident memory of a process."""

_log = logging.getLogger(__name__)


class _Thread(Task[T]):
    """A task that is suspended while its process is stopped."""

    def __init__(self, process: Process, coroutine: Coroutine[Any, Any, T]) -> None:
        super().__init__(process.clock, coroutine)
        self._process = process
        self._suspended = False

    def resume(self) -> None:
        if self._process.stopped:
            self._suspended = True
        else:
            super().resume()

    def _advance(self, move: Callable[[], Any]) -> None:
        try:
            super()._advance(move)
        except Exception:
            # As for a whole program: an error in our own code must not stop the cluster.
            _log.exception("a thread of process %s (%s) failed", self._process.pid, " ".join(self._process.argv))
            self._end(None)

    def continue_suspended(self) -> None:
        if self._suspended:
            self._suspended = False
            self.resume()


class Process:
    """One process. Programs receive theirs and do everything through it."""

    __slots__ = (
        "_changes",
        "_ending",
        "_finished",
        "_handlers",
        "_ignored",
        "_main",
        "_threads",
        "adopted",
        "argv",
        "binary",
        "children",
        "clock",
        "container",
        "credentials",
        "cwd",
        "done",
        "effort",
        "env",
        "executable",
        "exit_signal",
        "fds",
        "files",
        "foreground",
        "group",
        "kept_sockets",
        "memory",
        "name",
        "nofile",
        "outgoing_sockets",
        "parent",
        "pending",
        "pid",
        "reaps",
        "sockets",
        "started_at",
        "stopped",
        "thread_count",
        "umask",
    )

    def __init__(
        self,
        container: Container,
        argv: Sequence[str],
        *,
        parent: Process | None,
        env: Mapping[str, str],
        cwd: str,
        credentials: Credentials,
        fds: Mapping[int, OpenFile],
    ) -> None:
        self.container = container
        self.clock = container.clock
        self.argv = list(argv)
        self.name = argv[0].rpartition("/")[2] if argv else ""
        self.binary = self.name
        self.executable: FileStat | None = None
        """The file that it runs, as it was found when the program was started."""
        self.parent = parent
        self.env: Mapping[str, str] = env
        self.cwd = cwd
        self.credentials = credentials
        self.umask: int = 0o022 if parent is None else parent.umask
        self.nofile: int = container.nofile if parent is None else parent.nofile
        self.effort: Effort = Effort(self.clock) if parent is None else parent.effort
        self.fds: dict[int, OpenFile] = {number: file.retain() for number, file in fds.items()}
        self.files: FileView = FileView(container.filesystem if parent is None else parent.files.filesystem, self)
        self.memory = PROCESS_MEMORY
        self.sockets = 0
        """Connections that it has accepted."""
        self.kept_sockets = 0
        """Sockets that it listens on."""
        self.outgoing_sockets = 0
        """Connections to its dependencies, over which it sends the load's requests."""
        self.stopped = False
        self.reaps = False
        """Reaps orphaned processes, as an init does."""
        self.adopted = False
        self.foreground = True
        self.exit_signal = 0
        self.started_at = self.clock.now
        self.thread_count = 1
        """Threads as the kernel lists them; those of the simulated program are fewer."""
        self.children: list[Process] = []
        self.done: Signal[int] = Signal(self.clock)
        self.pending: list[int] = []
        self._changes: Change | None = None
        self._handlers: dict[int, Handler] = {}
        self._ignored: frozenset[int] = frozenset() if parent is None else parent._ignored
        self._threads: list[_Thread[Any]] = []
        self._main: _Thread[None] | None = None
        self._finished = False
        self._ending: int | None = None
        self.pid = container.pids.enter(self)
        self.group: int = self.pid if parent is None else parent.group
        if parent is not None:
            parent.children.append(self)
        container.meter.set_memory(self, PROCESS_MEMORY)

    # --- lifecycle ------------------------------------------------------------------------------------------------

    def start(self, entry: Entry) -> Process:
        self._main = _Thread(self, self._run(entry))
        self.clock.after(0, self._main.resume)
        return self

    async def _run(self, entry: Entry) -> None:
        code = 0
        try:
            while True:
                try:
                    code = await entry(self)
                    break
                except Replaced as replacement:
                    entry = replacement.entry
        except GeneratorExit:
            # The world is being garbage-collected: what its threads wait for may be deleted already.
            for thread in self._threads:
                thread.abandon()
            self._threads = []
            raise
        except Exit as ended:
            code = ended.code
        except ExecError as error:
            # The entrypoints of images are shell scripts that end in `exec "$@"`.
            code = error.status
            reason = "not found" if error.number == errno.ENOENT else os.strerror(error.number)
            self.complain(f"{self.argv[0]}: exec: {error.name}: {reason}\n")
        except BrokenPipeError:
            self.exit_signal = self.exit_signal or Signals.SIGPIPE
        except OSError as error:
            code = 1
            self.complain(f"{self.name}: {error.strerror}\n")
        except RecursionError:
            self.exit_signal = Signals.SIGSEGV
        except Exception:
            # An error in our own code must not stop the cluster: the process ends as on a segmentation fault.
            _log.exception("process %s (%s) failed", self.pid, " ".join(self.argv))
            self.exit_signal = Signals.SIGSEGV
        finally:
            self._finish(code & 0xFF)

    def end(self, code: int) -> None:
        """Exit the process from any thread (exit_group)."""
        if not self.done.is_set:
            self._ending = code & 0xFF
            if self._main is not None:
                self._main.cancel()

    def _finish(self, code: int) -> None:
        self._finished = True
        code = code if self._ending is None else self._ending
        status = 128 + self.exit_signal if self.exit_signal else code
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.cancel()
        self.container.namespace.close_owned_by(self)
        for file in self.fds.values():
            file.release()
        self.fds = {}
        self.container.meter.set_memory(self, 0)
        self._hand_over_children()
        self.done.set(status)
        if self.parent is None or self.parent.done.is_set:
            self.reap()
        else:
            self.parent._child_ended(self)
        self.container.process_ended(self, status)

    def _hand_over_children(self) -> None:
        heir = self.container.pids.init
        children, self.children = self.children, []
        for child in children:
            if heir is None or heir is self or heir.done.is_set:
                child.parent = None
            else:
                child.parent = heir
                child.adopted = True
                heir.children.append(child)
            if child.done.is_set and (child.parent is None or child.parent.reaps):
                child.reap()

    def _child_ended(self, child: Process) -> None:
        self.raise_signal(Signals.SIGCHLD)
        self._notify()
        if Signals.SIGCHLD in self._ignored or (child.adopted and self.reaps):
            child.reap()

    def reap(self) -> None:
        """Reap an ended process (wait): its PID is released."""
        self.container.pids.processes.pop(self.pid, None)
        if self.parent is not None and self in self.parent.children:
            self.parent.children.remove(self)

    @property
    def state(self) -> str:
        """The state letter of `ps`."""
        if self.done.is_set:
            return "Z"
        return "T" if self.stopped else "S"

    # --- children --------------------------------------------------------------------------------------------

    def fork(
        self,
        entry: Entry,
        *,
        argv: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        fds: Mapping[int, OpenFile] | None = None,
        new_group: bool = False,
    ) -> Process:
        """A child that runs `entry`, with this process's descriptors unless others are given."""
        child = Process(
            self.container,
            self.argv if argv is None else argv,
            parent=self,
            env=self.env if env is None else env,
            cwd=self.cwd,
            credentials=self.credentials,
            fds=self.fds if fds is None else fds,
        )
        if new_group:
            child.group = child.pid
        return child.start(entry)

    def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, fds: Mapping[int, OpenFile] | None = None
    ) -> Process:
        """Fork and execute; ExecError where the program cannot be found or run."""
        environment = self.env if env is None else env
        entry = self.container.loader(self, argv, environment)
        return self.fork(entry, argv=argv, env=environment, fds=fds)

    def change_root(self, filesystem: Filesystem) -> None:
        """Continue, with all further children, in another tree of files."""
        self.files = FileView(filesystem, self)
        self.cwd = "/"

    def execute(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Replace the program (execve): never returns; ExecError on failure."""
        entry = self.container.loader(self, argv, env)
        self.argv = list(argv)
        self.name = argv[0].rpartition("/")[2]
        self.env = env
        self._handlers = {}
        raise Replaced(entry)

    async def wait(self, child: Process) -> int:
        """Wait for a child to end, and reap it."""
        await child.done.wait()
        child.reap()
        return child.done.value

    async def changed(self, timeout: float | None = None) -> bool:
        """Wait until a child ends or a caught signal arrives."""
        if self._changes is None:
            self._changes = Change(self.clock)
        return await self._changes.wait(timeout)

    def _notify(self) -> None:
        if self._changes is not None:
            self._changes.notify()

    # --- threads and sockets ---------------------------------------------------------------------------------

    def spawn_thread(self, coroutine: Coroutine[Any, Any, Any]) -> Task[Any]:
        """Run a coroutine as a part of this process: it ends, at the latest, with it."""
        thread: _Thread[Any] = _Thread(self, coroutine)
        if self.done.is_set:
            coroutine.close()
            thread.done.set(None)
            return thread
        self._threads.append(thread)
        thread.done.then(lambda: self._threads.remove(thread) if thread in self._threads else None)
        self.clock.after(0, thread.resume)
        return thread

    def take_descriptor(self) -> bool:
        # The sum of `open_files`: this is called for every probe.
        if len(self.fds) + self.kept_sockets + self.outgoing_sockets + self.sockets >= self.nofile:
            return False
        self.sockets += 1
        return True

    def give_descriptor_back(self) -> None:
        self.sockets -= 1

    def keep_sockets(self, change: int) -> None:
        self.kept_sockets += change

    @property
    def open_files(self) -> int:
        """How many descriptors count against its limit."""
        return len(self.fds) + self.kept_sockets + self.outgoing_sockets + self.sockets

    # --- signals ---------------------------------------------------------------------------------------------

    @property
    def date(self) -> float:
        """The time of its machine's clock, which may be skewed."""
        machine = getattr(self.container.host, "machine", None)
        return self.clock.now + float(getattr(machine, "clock_skew", 0.0))

    def catch(self, *numbers: int) -> Signal[int]:
        """Catch these signals: they set the returned `Signal` instead of ending the process."""
        caught: Signal[int] = Signal(self.clock)
        for number in numbers:
            self.handle(number, caught.set)
        return caught

    def handle(self, number: int, handler: Handler | None) -> None:
        """Install a handler, or go back to the default action with None."""
        self._ignored -= {number}
        if handler is None:
            self._handlers.pop(number, None)
        else:
            self._handlers[number] = handler

    def ignore(self, number: int) -> None:
        self._handlers.pop(number, None)
        self._ignored |= {number}

    def raise_signal(self, number: int, *, from_outside: bool = False) -> None:
        """Deliver a signal. `from_outside` is one from the node, which alone can kill process 1."""
        if self.done.is_set:
            return
        if number == Signals.SIGKILL:
            if self.pid != 1 or from_outside:
                self.terminate(number)
            return
        if number == Signals.SIGCONT:
            self._continue()
        handler = self._handlers.get(number)
        if handler is not None:
            handler(number)
            self._notify()
        elif number in self._ignored or number in IGNORED_BY_DEFAULT or number == 0:
            return
        elif self.pid == 1:
            if number == Signals.SIGSTOP and from_outside:
                self.stopped = True
        elif number in STOPPING:
            self.stopped = True
        else:
            self.terminate(number)

    def _continue(self) -> None:
        if self.stopped:
            self.stopped = False
            for thread in (*self._threads, self._main):
                if thread is not None:
                    thread.continue_suspended()

    def terminate(self, number: int) -> None:
        """End it now, as by that signal."""
        if self.done.is_set:
            return
        self.exit_signal = number
        self.stopped = False
        if self._main is not None:
            self._main.cancel()
        if self._main is None or (self._main.done.is_set and not self._finished):
            # Killed before its first step, so its own cleanup code did not run.
            self._finish(0)

    # --- computing -------------------------------------------------------------------------------------------

    async def spend(self, seconds: float = STEP_COST) -> None:
        """Use the processor for a while: virtual time passes, more of it where the container is throttled."""
        due = self.effort.charge(seconds)
        if due or self.exit_signal:
            takes = self.container.meter.burn(due)
            self.effort.held_up(takes - due)
            await self.clock.sleep(takes)

    def spend_at_once(self, seconds: float = STEP_COST) -> bool:
        """Like `spend` for amounts too small to take time; False, without effect, for larger ones."""
        return not self.exit_signal and self.effort.take(seconds)

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    def set_memory(self, size: int) -> None:
        """Have that much memory resident from now on; above the container's limit the kernel kills."""
        self.memory = max(0, size)
        self.container.meter.set_memory(self, self.memory)

    async def allocate(self, size: int) -> None:
        """Grow by `size` bytes; does not return where that was too much."""
        self.set_memory(self.memory + size)
        await self.heed_signals()

    async def heed_signals(self) -> None:
        """Die now, if a deadly signal has come from this process itself; others end it while it waits."""
        if self.exit_signal:
            await self.clock.sleep(0)

    # --- descriptors -----------------------------------------------------------------------------------------

    def fd(self, number: int) -> OpenFile:
        found = self.fds.get(number)
        if found is None:
            raise os_error(errno.EBADF)
        return found

    def set_fd(self, number: int, file: OpenFile) -> None:
        """Point a descriptor at an open file; the reference is taken over."""
        if number not in self.fds and self.open_files >= self.nofile:
            file.release()
            raise os_error(errno.EMFILE)
        old = self.fds.get(number)
        self.fds[number] = file
        if old is not None:
            old.release()

    def close_fd(self, number: int) -> None:
        old = self.fds.pop(number, None)
        if old is not None:
            old.release()

    def open(self, path: str, mode: str = "r", permissions: int = 0o666) -> OpenFile:
        """Open a file without giving it a descriptor yet; EMFILE where the process has too many."""
        if self.open_files >= self.nofile:
            raise os_error(errno.EMFILE)
        return self.files.open(path, mode, permissions)

    async def read(self, size: int = CHUNK) -> bytes:
        return await self.fd(0).read(size)

    async def write(self, data: str | bytes) -> None:
        await self.fd(1).write(data.encode(errors="surrogateescape") if isinstance(data, str) else data)

    async def error(self, data: str | bytes) -> None:
        file = self.fds.get(2, NullFile())
        await file.write(data.encode(errors="surrogateescape") if isinstance(data, str) else data)

    def complain(self, text: str) -> None:
        """Write to standard error without waiting for a reader, for a process that is about to end."""
        file = self.fds.get(2)
        if file is None:
            return
        last_word = file.write(text.encode(errors="surrogateescape"))
        try:
            last_word.send(None)
        except (StopIteration, OSError):
            return
        last_word.close()
