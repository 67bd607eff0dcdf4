"""The shape of a program: facts about its image, and `run`, which is what the container does.

A program object belongs to an image, not to a container: it holds no state of a run. Everything a run needs or
changes goes through the `Process` it is given.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import cached_property
from signal import Signals
from typing import Any, ClassVar

from srearena.cluster.embedded.machine.files.file_view import FileView
from srearena.cluster.embedded.machine.files.inodes import Directory
from srearena.cluster.embedded.machine.images.families import Family, family_named
from srearena.cluster.embedded.machine.images.image_names import ImageReference
from srearena.cluster.embedded.machine.processes.accounts import Account, Accounts, accounts_in
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.root_filesystem import Folder, build_tree

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Binary:
    """An executable of a program's image; which one it is, `process.binary` tells the program."""

    name: str
    program: Program

    def run(self, process: Process) -> Coroutine[Any, Any, int]:
        return self.program.run(process)


class Program:
    """What an image holds and does. Subclasses set the facts that differ and write `run`."""

    entrypoint: ClassVar[tuple[str, ...]] = ()
    cmd: ClassVar[tuple[str, ...]] = ()
    user: ClassVar[str] = ""
    working_dir: ClassVar[str] = "/"
    env: ClassVar[Mapping[str, str]] = {"PATH": PATH}
    ports: ClassVar[tuple[int, ...]] = ()
    """The ports the image exposes."""
    base: ClassVar[str] = "debian"
    """The family of userland the image is built on; a tag like `1.27-alpine` overrides it."""
    follows_tag: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = ()
    """Small tools the image has beyond those of its family."""
    packaged_tools: ClassVar[frozenset[str]] = frozenset()
    """Of these, tools that come from packages of their own where those of the family are BusyBox's."""
    binaries: ClassVar[tuple[str, ...]] = ()
    """Paths of the executables that are this program."""
    accounts_added: ClassVar[tuple[Account, ...]] = ()
    folders: ClassVar[Mapping[str, Folder]] = {}
    files: ClassVar[Mapping[str, str]] = {}
    links: ClassVar[Mapping[str, str]] = {}
    stop_signal: ClassVar[int] = Signals.SIGTERM
    idle_cpu: ClassVar[float] = 0.0005
    """Cores a container of it uses while nothing happens."""
    idle_network: ClassVar[tuple[float, float]] = (0.0, 0.0)
    """Bytes per second that it receives and sends while nothing happens, such as watches of the API. Chosen: magnitudes
    of small clusters."""
    idle_writes: ClassVar[float] = 0.0
    """Bytes per second that it writes to its files while nothing happens, such as its own diagnosis."""
    threads: ClassVar[int] = 1
    """Threads of its first process: of its runtime and its workers. Chosen: usual of an idle one."""
    idle_memory: ClassVar[int] = 8 * 1024 * 1024
    default_version: ClassVar[str] = "1.0"

    def __init__(self, reference: ImageReference) -> None:
        self.reference = reference

    @property
    def version(self) -> str:
        return self.reference.version or self.default_version

    @cached_property
    def family(self) -> Family:
        return family_named(self.base, self.reference.tag if self.follows_tag else "")

    @cached_property
    def tree(self) -> Directory:
        """The image's files: frozen, shared by every container."""
        return build_tree(self)

    def accounts(self, files: FileView) -> Accounts:
        """The users as the container's files have them now."""
        passwd, group = (files.read_text(path) if files.is_file(path) else "" for path in ("/etc/passwd", "/etc/group"))
        return accounts_in(passwd, group)

    def binary(self, path: str) -> Binary:
        return Binary(path.rpartition("/")[2], self)

    async def run(self, process: Process) -> int:
        """Run to an exit status. `process.argv` and `process.binary` say as what.

        An image with no binaries of its own, only tools, has nothing to add here.
        """
        return 0
