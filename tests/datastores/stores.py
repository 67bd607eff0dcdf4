"""What tests of datastores have in common: volumes with files, and the model behind a port."""

from __future__ import annotations

from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.machine.files.filesystem import Volume
from srearena.cluster.embedded.machine.files.inodes import Directory, File
from tests.containers.machine import Machine


def folder(**files: str) -> Volume:
    """A volume with these files; two underscores in a name stand for a dot."""
    entries = {name.replace("__", "."): File(text.encode()) for name, text in files.items()}
    return Volume(Directory(0o777, entries=entries))


def served(machine: Machine, port: int) -> object:
    """The model that answers on a port of the pod."""
    listener = machine.namespace.find("10.244.1.5", port)
    assert listener is not None, f"nobody listens on {port}"
    assert listener.server is not None
    return listener.server


def stopped(machine: Machine, container: Container) -> int:
    """Ask it to stop; its exit code."""
    container.stop()
    machine.clock.advance(10)
    assert container.done.is_set, container.log.text()
    return container.done.value.code
