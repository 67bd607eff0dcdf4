"""Folders of a machine that show what runs on it: the logs of containers, and the folders of pods.

They are read from the runtime when a program looks, and take no space in the tree. What is created in them lies beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.containers.log import ContainerLog
from srearena.cluster.embedded.machine.files.host_tree import make_folders
from srearena.cluster.embedded.machine.files.inodes import Directory, Generated, Node, Symlink
from srearena.cluster.embedded.objects import name_of, namespace_of

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
    from srearena.cluster.embedded.machine.files.mounted_volume import MountedVolume
    from srearena.cluster.embedded.machine.machine import Machine

_LOGS = "/var/log/pods"


class HostView(Directory):
    """A directory whose entries are found when they are asked for."""

    __slots__ = ("_find",)

    def __init__(self, find: Callable[[], Mapping[str, Node]]) -> None:
        super().__init__(0o755)
        self._find = find

    def get(self, name: str) -> Node | None:
        return super().get(name) or self._find().get(name)

    def names(self) -> Iterable[str]:
        return dict.fromkeys((*self._find(), *super().names()))

    @property
    def links(self) -> int:
        return 2 + sum(isinstance(self.get(name), Directory) for name in self.names())

    def clone(self) -> Directory:
        return Directory(self.mode, self.uid, self.gid, self.mtime, {name: self._entry(name) for name in self.names()})

    def _entry(self, name: str) -> Node:
        found = self.get(name)
        assert found is not None
        return found


def install(machine: Machine) -> None:
    """Put the views into the tree of a machine."""
    root = machine.files.root
    assert isinstance(root, Directory)
    make_folders(root, "/var/log").put("pods", HostView(lambda: _pod_logs(machine)))
    make_folders(root, "/var/log").put("containers", HostView(lambda: _log_links(machine)))
    make_folders(root, "/var/lib/kubelet").put("pods", HostView(lambda: _pod_folders(machine)))


def _pod_logs(machine: Machine) -> dict[str, Node]:
    return {_log_folder(sandbox): _logs_of(sandbox) for sandbox in machine.sandboxes.values()}


def _log_folder(sandbox: Sandbox) -> str:
    return f"{namespace_of(sandbox.pod)}_{name_of(sandbox.pod)}_{sandbox.uid}"


def _logs_of(sandbox: Sandbox) -> Node:
    return HostView(lambda: {name: _attempts_of(attempts) for name, attempts in sandbox.records.items()})


def _attempts_of(attempts: list[ContainerRecord]) -> Node:
    return Directory(0o755, entries={f"{record.attempt}.log": _log_file(record.log) for record in attempts})


def _log_file(log: ContainerLog) -> Node:
    return Generated(lambda: log_text(log), 0o640)


def log_text(log: ContainerLog) -> bytes:
    """A container's log as the runtime writes it: time, stream, `F` for a full line or `P` for a part of one."""
    return b"".join(
        b"%s %s %s %s\n" % (_stamp(line.time), line.stream.encode(), b"P" if line.partial else b"F", line.text)
        for line in log.lines()
    )


def _stamp(moment: float) -> bytes:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()


def _log_links(machine: Machine) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for sandbox in machine.sandboxes.values():
        pod, namespace = name_of(sandbox.pod), namespace_of(sandbox.pod)
        for name, attempts in sandbox.records.items():
            for record in attempts:
                target = f"{_LOGS}/{_log_folder(sandbox)}/{name}/{record.attempt}.log"
                found[f"{pod}_{namespace}_{name}-{record.id}.log"] = Symlink(target)
    return found


def _pod_folders(machine: Machine) -> dict[str, Node]:
    return {uid: HostView(lambda uid=uid: _pod_folder(machine, uid)) for uid in machine.sandboxes}  # type: ignore[misc]


def _pod_folder(machine: Machine, uid: str) -> dict[str, Node]:
    sandbox = machine.sandboxes.get(uid)
    if sandbox is None:
        return {}
    kinds = {spec["name"]: _plugin_folder(spec) for spec in sandbox.pod["spec"].get("volumes") or ()}
    folders: dict[str, dict[str, Node]] = {}
    for name, mounted in machine.volumes.get(uid, {}).items():
        if not _is_shown(machine, mounted):
            continue
        folders.setdefault(kinds[name], {})[name] = mounted.volume.root
    volumes = Directory(0o750, entries={kind: Directory(0o755, entries=found) for kind, found in folders.items()})
    containers = Directory(0o750, entries={name: Directory(0o755) for name in sandbox.records})
    return {"volumes": volumes, "containers": containers}


def _is_shown(machine: Machine, mounted: MountedVolume) -> bool:
    """Whether a volume is in the folder of its pod.

    Folders of the machine itself are not, as the kubelet leaves a hostPath where it is; a volume above this view would
    contain itself without end. Credentials are left out as well: an engineer who may debug a node would be every
    account that has a pod there (docs/fidelity.md).
    """
    if mounted.kind in ("hostPath", "secret", "projected"):
        return False
    node: Node | None = machine.files.root
    for part in ("var", "lib", "kubelet", "pods"):
        if node is mounted.volume.root:
            return False
        node = node.get(part) if isinstance(node, Directory) else None
    return node is not mounted.volume.root


_PLUGINS = {"configMap": "configmap", "downwardAPI": "downward-api"}


def _plugin_folder(volume: Mapping[str, object]) -> str:
    kind = next((folder for field, folder in _PLUGINS.items() if field in volume), "")
    if not kind:
        kind = "empty-dir" if "emptyDir" in volume else "local-volume"
    return f"kubernetes.io~{kind}"
