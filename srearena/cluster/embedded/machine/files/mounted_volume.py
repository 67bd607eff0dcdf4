"""A volume that is mounted for a pod. It stays mounted without a kubelet."""

from __future__ import annotations

from dataclasses import dataclass, field

from srearena.cluster.embedded.machine.files.filesystem import Volume
from srearena.cluster.embedded.machine.files.inodes import Node


@dataclass(slots=True)
class MountedVolume:
    name: str
    volume: Volume
    kind: str
    node: Node | None = None
    """The file, where the volume is one and not a folder."""
    read_only: bool = False
    size_limit: int | None = None
    """Above this a disk-backed emptyDir gets its pod evicted."""
    references: list[tuple[str, str]] = field(default_factory=list)
    source: str = ""
    """Where the volume is on the host, as the runtime's messages name it."""
