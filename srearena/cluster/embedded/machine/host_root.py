"""The root of a machine, as a process of a container sees it that has entered it (`chroot /host`, `nsenter`)."""

from __future__ import annotations

from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.machine.containers.runtime import Sandbox
from srearena.cluster.embedded.machine.files.filesystem import Filesystem, Mount
from srearena.cluster.embedded.machine.files.inodes import Directory
from srearena.cluster.embedded.machine.files.procfs import system_mounts
from srearena.cluster.embedded.machine.machine import Machine

_OF_KERNEL = ("/proc", "/sys", "/dev")


def machine_of(container: Container) -> Machine | None:
    """The machine on which a container runs."""
    return container.host.machine if isinstance(container.host, Sandbox) else None


def host_filesystem(container: Container, machine: Machine) -> Filesystem:
    """All of a machine's files, with the kernel's where the machine has them mounted."""
    found = Filesystem(container.clock, Directory())
    found.root.volume = machine.files
    for mount in system_mounts(container):
        if mount.path in _OF_KERNEL:
            found.mount(Mount(mount.path, mount.volume, mount.read_only, node=mount.volume.root))
    return found


def on_host(container: Container, filesystem: Filesystem) -> Machine | None:
    """The machine, where a tree of files is that machine's own."""
    machine = machine_of(container)
    return machine if machine is not None and filesystem.root.root is machine.files.root else None
