"""What a container needs of the program behind its image; the package `programs` implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from srearena.cluster.embedded.machine.files.file_view import FileView
from srearena.cluster.embedded.machine.files.inodes import Directory
from srearena.cluster.embedded.machine.images.families import Family
from srearena.cluster.embedded.machine.processes.accounts import Accounts


class ImageProgram(Protocol):
    """The configuration, files and users of an image."""

    @property
    def entrypoint(self) -> Sequence[str]: ...

    @property
    def cmd(self) -> Sequence[str]: ...

    @property
    def env(self) -> Mapping[str, str]: ...

    @property
    def user(self) -> str: ...

    @property
    def working_dir(self) -> str: ...

    @property
    def stop_signal(self) -> int: ...

    @property
    def idle_cpu(self) -> float:
        """Cores a container uses while idle."""
        ...

    @property
    def idle_network(self) -> tuple[float, float]:
        """Bytes per second received and sent while idle."""
        ...

    @property
    def idle_writes(self) -> float:
        """Bytes per second written to files while idle."""
        ...

    @property
    def packaged_tools(self) -> frozenset[str]:
        """Tools that are not those of the family, such as iputils' ping on Alpine."""
        ...

    @property
    def threads(self) -> int:
        """Threads of its first process."""
        ...

    @property
    def family(self) -> Family:
        """The userland the image is built on."""
        ...

    @property
    def tree(self) -> Directory:
        """The image's files: frozen, shared by every container."""
        ...

    def accounts(self, files: FileView) -> Accounts:
        """The users and groups defined in the container's files."""
        ...


class ProgramFinder(Protocol):
    """Finds the program behind an image reference."""

    def find(self, image: str) -> ImageProgram: ...
