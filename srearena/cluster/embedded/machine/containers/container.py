"""A container: files, processes, sockets and meters around one main program.

The kubelet makes one from a `ContainerConfig` and a `HostContext`, starts it, sends it signals, runs further commands
in it, and learns from `done` how it ended. The program comes from the image. A container is started at most once; a
restart is a new container.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from signal import Signals
from typing import Any, Protocol

from srearena.cluster.embedded.clock import Clock, Signal
from srearena.cluster.embedded.machine.containers.errors import CreateError, RuntimeFailure, StartError, exec_failure
from srearena.cluster.embedded.machine.containers.log import ContainerLog, LogLine
from srearena.cluster.embedded.machine.files.file_view import FileView
from srearena.cluster.embedded.machine.files.filesystem import Filesystem, Mount, RootCaller
from srearena.cluster.embedded.machine.files.inodes import Executable, Space
from srearena.cluster.embedded.machine.files.mounts import lay
from srearena.cluster.embedded.machine.files.procfs import system_mounts
from srearena.cluster.embedded.machine.files.streams import NullFile, OpenFile, Pipe
from srearena.cluster.embedded.machine.images.program import ImageProgram
from srearena.cluster.embedded.machine.journal import KERNEL
from srearena.cluster.embedded.machine.meter import IDLE, ResourceMeter
from srearena.cluster.embedded.machine.networking.interface_counters import IDLE_PACKET, Exchange
from srearena.cluster.embedded.machine.networking.reachability import NetworkFacade
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.machine.processes.cpu_cost import COMMAND_COST
from srearena.cluster.embedded.machine.processes.credentials import DEFAULT_CAPABILITIES, Credentials
from srearena.cluster.embedded.machine.processes.execution import Entry, ExecError
from srearena.cluster.embedded.machine.processes.pids import PidNamespace
from srearena.cluster.embedded.machine.processes.process import DEFAULT_NOFILE, Process
from srearena.cluster.embedded.machine.processes.terminal import Terminal
from srearena.cluster.embedded.objects import Obj

__all__ = [
    "Container",
    "ContainerConfig",
    "ContainerExit",
    "ContainerLog",
    "CreateError",
    "HostContext",
    "KernelFacts",
    "LogLine",
    "Mount",
    "RuntimeFailure",
    "StartError",
]

MAX_INTERPRETERS = 4


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Kernel facts of the node, as /proc and uname show them."""

    release: str = "6.8.0-45-generic"
    version: str = "#45-Ubuntu SMP PREEMPT_DYNAMIC"
    machine: str = "x86_64"
    cpus: int = 4
    memory: int = 16 * 1024**3
    booted_at: float = 0.0
    settings: dict[str, str] = field(default_factory=dict)
    """Parameters in /proc/sys that were set since, outside of network namespaces."""
    survey: Callable[[], tuple[int, float]] | None = None
    """Bytes of the node's memory that are in use, and the processors that its programs want."""


class HostContext(Protocol):
    """The interface of the node to a container. One object may serve all containers of a pod."""

    @property
    def clock(self) -> Clock: ...

    @property
    def random(self) -> Random: ...

    @property
    def pod(self) -> Obj: ...

    @property
    def hostname(self) -> str: ...

    @property
    def node_name(self) -> str: ...

    @property
    def kernel(self) -> KernelFacts: ...

    @property
    def network(self) -> NetworkFacade: ...

    @property
    def namespace(self) -> NetworkNamespace: ...


@dataclass(slots=True)
class ContainerConfig:
    """The configuration of a container, with all values expanded and resolved."""

    name: str
    image: str
    command: Sequence[str] | None = None
    args: Sequence[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    working_dir: str | None = None
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    capabilities: frozenset[str] = DEFAULT_CAPABILITIES
    mounts: Sequence[Mount] = ()
    read_only_root: bool = False
    no_new_privileges: bool = False
    """Whether executables with the set-user-ID bit run as who starts them (PR_SET_NO_NEW_PRIVS)."""
    cpu_limit: float | None = None
    memory_limit: int | None = None
    pids_limit: int = 1024
    nofile: int = DEFAULT_NOFILE
    ports: Sequence[Obj] = ()
    """The container's `ports`, in wire shape."""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    kill_all_on_oom: bool = True
    """Whether the OOM killer kills all processes of the container (memory.oom.group)."""


@dataclass(frozen=True, slots=True)
class ContainerExit:
    code: int
    signal: int
    oom_killed: bool
    finished_at: float

    @property
    def reason(self) -> str:
        """The reason in the container's terminated state."""
        if self.oom_killed:
            return "OOMKilled"
        return "Completed" if self.code == 0 else "Error"


class Container:
    __slots__ = (
        "_stdin",
        "argv",
        "config",
        "done",
        "environment",
        "filesystem",
        "host",
        "id",
        "image_bytes",
        "log",
        "main",
        "meter",
        "nofile",
        "oom_killed",
        "pids",
        "program",
        "started_at",
        "terminal",
    )

    def __init__(
        self,
        config: ContainerConfig,
        host: HostContext,
        *,
        program: ImageProgram,
        pids: PidNamespace | None = None,
        disk: Space | None = None,
        log: ContainerLog | None = None,
        container_id: str = "",
        image_bytes: int = 0,
    ) -> None:
        self.config = config
        self.image_bytes = image_bytes
        """Size of the image on the disk."""
        self.host = host
        self.id = container_id
        self.program = program
        self.pids = pids if pids is not None else PidNamespace(config.pids_limit)
        self.log = log if log is not None else ContainerLog(host.clock)
        self.meter = ResourceMeter(
            host.clock,
            key=container_id,
            cpu_limit=config.cpu_limit,
            memory_limit=config.memory_limit,
            on_out_of_memory=self._out_of_memory,
        )
        self.nofile = config.nofile
        self.oom_killed = False
        self.done: Signal[ContainerExit] = Signal(host.clock)
        self.main: Process | None = None
        self.started_at: float | None = None
        self.terminal: Terminal | None = None
        self._stdin: Pipe | None = None
        self.argv = self._arguments()
        self.filesystem = Filesystem(
            host.clock, self.program.tree, read_only_root=config.read_only_root, space=Space(parent=disk)
        )
        self.environment = self._environment()

    @property
    def clock(self) -> Clock:
        return self.host.clock

    @property
    def network(self) -> NetworkFacade:
        """The pod's network, with the names this container's own files give."""
        return self.host.network.with_files(self._text_of)

    def _text_of(self, path: str) -> str | None:
        try:
            return self.files.read_text(path)
        except (OSError, UnicodeError):
            return None

    @property
    def namespace(self) -> NetworkNamespace:
        return self.host.namespace

    @property
    def random(self) -> Random:
        return self.host.random

    @property
    def running(self) -> bool:
        return self.main is not None and not self.done.is_set

    @property
    def files(self) -> FileView:
        """The container's files as the node accesses them, without permission checks."""
        return FileView(self.filesystem, RootCaller())

    @property
    def stop_signal(self) -> int:
        return self.program.stop_signal

    # --- start -----------------------------------------------------------------------------------------------

    def _arguments(self) -> list[str]:
        """Command and args against the image's entrypoint and cmd, as docker combines them."""
        command, args = self.config.command or (), self.config.args or ()
        if command:
            argv = [*command, *args]
        else:
            argv = [*self.program.entrypoint, *(args or self.program.cmd)]
        argv = [_clean(word) for word in argv]
        if not argv:
            raise CreateError(
                f'failed to generate container "{self.id}" spec: failed to apply OCI options: no command specified'
            )
        return argv

    def _environment(self) -> dict[str, str]:
        environment = {**self.program.env, "HOSTNAME": self.host.hostname, **self.config.env}
        if self.config.tty:
            environment.setdefault("TERM", "xterm")
        return environment

    def credentials(self) -> Credentials:
        """The credentials of the main process: from the pod, or else from the image."""
        config = self.config
        accounts = self.program.accounts(self.files)
        if config.uid is not None:
            account = accounts.by_uid(config.uid)
        else:
            account = accounts.resolve(self.program.user)
        gid = config.gid if config.gid is not None else account.gid
        return Credentials(account.uid, gid, tuple(dict.fromkeys((gid, *config.groups))), config.capabilities)

    def start(self) -> Process:
        """Start the main process; StartError with the runtime's message on failure."""
        if self.main is not None:
            raise RuntimeError("a container is started once")
        lay(self.filesystem, [*system_mounts(self), *self.config.mounts])
        credentials = self.credentials()
        home = self.program.accounts(self.files).by_uid(credentials.uid).home
        self.environment.setdefault("HOME", home)
        cwd = self.config.working_dir or self.program.working_dir or "/"
        fds = self._standard_files()
        process = Process(
            self,
            self.argv,
            parent=None,
            env=self.environment,
            cwd=self._enter(cwd, credentials),
            credentials=credentials,
            fds=fds,
        )
        for file in dict.fromkeys(fds.values()):
            file.release()
        try:
            entry = self.loader(process, self.argv, self.environment)
        except ExecError as error:
            if not error.late:
                process.terminate(Signals.SIGKILL)
                raise StartError.of(error) from None
            entry = _failing_entry(error)
        self.main = process
        self.started_at = self.clock.now
        self.meter.load(IDLE, self.program.idle_cpu)
        process.thread_count = self.program.threads
        received, sent = self.program.idle_network
        if received or sent:
            idle = Exchange(received, received / IDLE_PACKET, sent, sent / IDLE_PACKET)
            self.namespace.carried.set_steady(self, idle, self.clock.now)
        return process.start(entry)

    def _enter(self, cwd: str, credentials: Credentials) -> str:
        """The working directory; created where the image has none."""
        files = self.files
        try:
            if not files.is_dir(cwd):
                # The runtime creates it before the root is remounted read-only.
                read_only, self.filesystem.root.read_only = self.filesystem.root.read_only, False
                try:
                    files.mkdir(cwd, 0o755, parents=True)
                finally:
                    self.filesystem.root.read_only = read_only
        except OSError as error:
            raise StartError(f"mkdir {cwd}: {str(error.strerror).lower()}") from None
        found = files.stat(cwd)
        if not credentials.may(found.node.mode, found.node.uid, found.node.gid, 1):
            raise StartError(f'chdir to cwd ("{cwd}") set in config.json failed: permission denied')
        return found.path

    def _standard_files(self) -> dict[int, OpenFile]:
        if self.config.tty:
            self.terminal = Terminal(self.clock, on_output=lambda data: self.log.write("stdout", data))
            tty = self.terminal.file()
            return {0: tty, 1: tty, 2: tty}
        stdin: OpenFile = NullFile()
        if self.config.stdin:
            self._stdin = Pipe(self.clock)
            stdin, writer = self._stdin.ends()
            del writer
        return {0: stdin, 1: self.log.writer("stdout"), 2: self.log.writer("stderr")}

    @property
    def stdin(self) -> Pipe | None:
        """The standard input of the main process, for `kubectl attach` without a terminal."""
        return self._stdin

    def loader(self, process: Process, argv: Sequence[str], env: Mapping[str, str], depth: int = 0) -> Entry:
        """What the kernel does at execve: find the file, and the code behind it."""
        name = argv[0]
        path = process.files.search(
            name, env.get("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        )
        if path is None or not name:
            raise ExecError(name, errno.ENOENT, searched=True)
        try:
            node = process.files.executable(path)
        except OSError as error:
            raise ExecError(name, error.errno or errno.ENOENT) from None
        if isinstance(node, Executable):
            runnable, found = node.runnable, process.files.stat(path)

            async def run(process: Process) -> int:
                process.argv = list(argv)
                process.name = name.rpartition("/")[2]
                process.binary = runnable.name
                process.executable = found
                await process.spend(COMMAND_COST)
                return await runnable.run(process)

            return run
        first = node.content[:256].split(b"\n", 1)[0].decode(errors="replace")
        if not first.startswith("#!") or not first[2:].strip():
            raise ExecError(name, errno.ENOEXEC, late=True)
        if depth >= MAX_INTERPRETERS:
            raise ExecError(name, errno.ELOOP, late=True)
        interpreter = first[2:].split(None, 1)
        try:
            return self.loader(process, [*(word.strip() for word in interpreter), path, *argv[1:]], env, depth + 1)
        except ExecError as error:
            # The kernel reports a missing interpreter as if the script itself were missing.
            raise ExecError(name, error.number, late=True) from None

    # --- while it runs ---------------------------------------------------------------------------------------

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: OpenFile | None = None,
        stdout: OpenFile | None = None,
        stderr: OpenFile | None = None,
        tty: Terminal | None = None,
    ) -> Process:
        """Run a further command (kubectl exec, a probe, a hook); StartError where it cannot be started.

        The container takes ownership of the files. With `tty`, all three descriptors are that terminal.
        """
        argv = [_clean(word) for word in argv]
        if not self.running or self.main is None:
            raise RuntimeFailure("failed to exec in container: container is not running")
        if tty is not None:
            file = tty.file()
            fds: dict[int, OpenFile] = {0: file, 1: file, 2: file}
        else:
            fds = {0: stdin or NullFile(), 1: stdout or NullFile(), 2: stderr or stdout or NullFile()}
        env = {**self.environment, "TERM": "xterm"} if tty is not None else self.environment
        process = Process(
            self,
            argv,
            parent=None,
            env=env,
            cwd=self.main.cwd if self.config.working_dir is None else self.config.working_dir,
            credentials=self.credentials(),
            fds=fds,
        )
        for file in dict.fromkeys(fds.values()):
            file.release()
        try:
            entry = self.loader(process, argv, env)
        except ExecError as error:
            process.terminate(Signals.SIGKILL)
            raise exec_failure(error, self.random) from None
        if tty is not None:
            tty.foreground = process
        return process.start(entry)

    def signal(self, number: int) -> None:
        """Send the main process a signal, from the node."""
        if self.main is not None:
            self.main.raise_signal(number, from_outside=True)

    def stop(self) -> None:
        """Send the stop signal of the image."""
        self.signal(self.stop_signal)

    def kill(self) -> None:
        self.signal(Signals.SIGKILL)

    def process_ended(self, process: Process, status: int) -> None:
        """Called by every process of this container when it ends."""
        if process is not self.main or self.done.is_set:
            return
        exit_ = ContainerExit(status, process.exit_signal, self.oom_killed, self.clock.now)
        self.done.set(exit_)
        for other in list(self.pids.processes.values()):
            if other.container is self:
                other.terminate(Signals.SIGKILL)
        self.meter.load(IDLE, 0)
        self.namespace.carried.set_steady(self, None, self.clock.now)
        self.log.flush()

    def _out_of_memory(self, cause: Any) -> None:
        if not isinstance(cause, Process) or not self.running:
            cause = self.main
        if cause is None:
            return
        self.oom_killed = True
        machine = getattr(self.host, "machine", None)
        if machine is not None:
            machine.oom_kills += 1
            text = f"Memory cgroup out of memory: Killed process {cause.pid} ({cause.name}) "
            rss = f"anon-rss:{self.meter.working_set // 1024}kB, UID:{cause.credentials.uid}"
            machine.journal.write(self.clock.now, KERNEL, text + rss)
        victims = list(self.pids.processes.values()) if self.config.kill_all_on_oom else [cause]
        for victim in victims:
            if victim.container is self and victim is not self.main:
                victim.terminate(Signals.SIGKILL)
        if self.main in victims and self.main is not None:
            self.main.terminate(Signals.SIGKILL)


def _clean(word: str) -> str:
    """Replace lone UTF-16 surrogates, which cannot be encoded as bytes."""
    if word.isascii():
        return word
    return word.encode("utf-8", "replace").decode() if any("\ud800" <= char <= "\udc7f" for char in word) else word


def _failing_entry(error: ExecError) -> Entry:
    """An entry that fails: the container exists when execve fails, so the error is its only log line."""

    async def run(process: Process) -> int:
        await process.error(f"exec {error.name}: {os.strerror(error.number).lower()}\n")
        return 255

    return run
