"""Operations on a machine from outside Kubernetes: power, network, disk, clock and the kubelet process.

The implementation behind `NodeAccess`: operations change the machine or its programs, never an object of the API.
Callers in another process select an operation by name (`perform`); the names are those in `OPERATIONS`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from srearena.cluster.embedded.kubelet.node.configuration import keep_disk_free
from srearena.cluster.embedded.machine.files.host_tree import make_folders
from srearena.cluster.embedded.machine.files.inodes import File
from srearena.cluster.embedded.machine.images.store import BYTES_PER_SECOND
from srearena.cluster.embedded.machine.machine import new_boot_id

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.kubelet import Kubelet
    from srearena.cluster.embedded.kubelet.nodes import Nodes

REBOOT_SECONDS = 45.0
OPERATIONS = (
    "stop_kubelet",
    "start_kubelet",
    "restart_kubelet",
    "reserve_disk",
    "power_off",
    "power_on",
    "reboot",
    "partition",
    "heal",
    "fill_disk",
    "hold_memory",
    "break_disk",
    "set_clock_skew",
    "write_file",
    "slow_pulls",
    "slow_disk",
    "burn_cpu",
    "shape_network",
)


class NodeOperationError(ValueError):
    """The operation cannot be performed on this machine."""


class UnknownNode(NodeOperationError):
    """There is no such machine."""


class NodeAccess:
    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def _kubelet(self, node: str) -> Kubelet:
        found = self._nodes.kubelet(node)
        if found is None:
            raise UnknownNode(f"no node {node!r}; there are {', '.join(sorted(self._nodes.kubelets)) or 'none'}")
        return found

    def operations(self) -> tuple[str, ...]:
        return OPERATIONS

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        """Do what one of `operations` names, with the arguments of the method of that name."""
        if operation not in OPERATIONS:
            raise NodeOperationError(f"no operation {operation!r} on nodes; there are {', '.join(OPERATIONS)}")
        method = getattr(self, operation)
        try:
            inspect.signature(method).bind(node, **arguments)
        except TypeError as problem:
            raise NodeOperationError(f"{operation}: {problem}") from problem
        method(node, **arguments)

    # --- kubelet ---------------------------------------------------------------------------------------------

    def stop_kubelet(self, node: str) -> None:
        """`systemctl stop kubelet`: containers keep running, unmanaged."""
        self._kubelet(node).stop()

    def start_kubelet(self, node: str) -> None:
        kubelet = self._kubelet(node)
        if kubelet.machine.powered:
            kubelet.start()

    def restart_kubelet(self, node: str) -> None:
        self.stop_kubelet(node)
        self.start_kubelet(node)

    def reserve_disk(self, node: str, share: float) -> None:
        """`evictionHard: {nodefs.available: ...}` in the kubelet's configuration, followed by a kubelet restart."""
        keep_disk_free(self._kubelet(node).machine, share)
        self.restart_kubelet(node)

    # --- power and network ------------------------------------------------------------------------------------

    def power_off(self, node: str) -> None:
        """Stop everything on the machine at once, without graceful termination."""
        kubelet = self._kubelet(node)
        machine = kubelet.machine
        if not machine.powered:
            return
        kubelet.stop()
        machine.powered = False
        machine.network.set_node_up(node, False)
        for sandbox in machine.sandboxes.values():
            sandbox.lose()
        for volumes in machine.volumes.values():
            # Memory contents are lost and are set up again at boot.
            for name in [name for name, mounted in volumes.items() if mounted.volume.fstype == "tmpfs"]:
                del volumes[name]

    def power_on(self, node: str) -> None:
        kubelet = self._kubelet(node)
        machine = kubelet.machine
        if machine.powered:
            return
        machine.powered = True
        machine.booted_at = machine.clock.now
        machine.boot_id = new_boot_id(machine.random)
        machine.forget_settings()
        machine.network.set_node_up(node, True)
        kubelet.start()

    def reboot(self, node: str, seconds: float = REBOOT_SECONDS) -> None:
        """Power off now and on again after `seconds` of virtual time."""
        self.power_off(node)
        self._nodes.world.clock.after(seconds, self.power_on, node)

    def partition(self, node: str) -> None:
        """Disconnect the machine from the network; its containers keep running."""
        kubelet = self._kubelet(node)
        kubelet.disconnect()
        kubelet.machine.network.set_node_up(node, False)

    def heal(self, node: str) -> None:
        """Undo a partition."""
        kubelet = self._kubelet(node)
        kubelet.machine.network.set_node_up(node, True)
        kubelet.reconnect()

    # --- disk, memory, clock ---------------------------------------------------------------------------------

    def fill_disk(self, node: str, share: float) -> None:
        """Fill the disk to a share (0 to 1) of its size with one file; 0 removes the file."""
        machine = self._kubelet(node).machine
        size, used = machine.disk.limits
        others = used - machine.ballast
        wanted = max(0, min(int(size * share) - others, size - others)) if share > 0 else 0
        machine.disk.take(wanted - machine.ballast)
        machine.ballast = wanted

    def hold_memory(self, node: str, size: int) -> None:
        """Allocate `size` bytes of memory in a process of the machine itself; 0 ends it."""
        self._kubelet(node).machine.memory_ballast = max(0, size)

    def break_disk(self, node: str, number: int | None) -> None:
        """Fail every access to the machine's own files with this errno; None repairs the disk."""
        machine = self._kubelet(node).machine
        machine.files.broken = number
        for volumes in machine.volumes.values():
            for mounted in volumes.values():
                if mounted.volume.source == "/dev/sda1" and mounted.volume.fstype == "ext4":
                    mounted.volume.broken = number
        for sandbox in machine.sandboxes.values():
            for record in sandbox.running():
                if record.container is not None:
                    for mount in record.container.filesystem.mounts:
                        if mount.volume.source == "/dev/sda1" and mount.volume.fstype == "ext4":
                            mount.volume.broken = number

    def set_clock_skew(self, node: str, seconds: float) -> None:
        """Set the machine's clock ahead by `seconds` (behind, if negative)."""
        self._kubelet(node).machine.clock_skew = seconds

    def write_file(self, node: str, path: str, data: bytes | str) -> None:
        """A file of the machine, as hostPath volumes see it."""
        folder, _, name = path.rpartition("/")
        content = data.encode() if isinstance(data, str) else data
        make_folders(self._kubelet(node).machine.files.root, folder).put(name, File(content, 0o644))

    def slow_disk(self, node: str, factor: float) -> None:
        """Multiply the disk latency of datastores by `factor`; 1 repairs the disk."""
        self._kubelet(node).machine.disk_factor = max(1.0, factor)

    def burn_cpu(self, node: str, cores: float) -> None:
        """Use `cores` of CPU in a process of the machine itself; 0 ends it."""
        self._kubelet(node).machine.own_load.load("burn", max(0.0, cores))

    def shape_network(
        self,
        node: str,
        pod: str = "",
        delay: float = 0.0,
        jitter: float = 0.0,
        loss: float = 0.0,
        corruption: float = 0.0,
        bandwidth: float = 0.0,
    ) -> None:
        """`tc netem` on the interface of a pod (`namespace/name`), or on that of the machine; all zeros remove it.

        The setting of a pod's interface is lost with its sandbox.
        """
        machine = self._kubelet(node).machine
        machine.network.shape(
            node, pod, delay=delay, jitter=jitter, loss=loss, corruption=corruption, bandwidth=bandwidth
        )

    def slow_pulls(self, node: str, factor: float) -> None:
        """Multiply the duration of image downloads by `factor`."""
        images = self._kubelet(node).machine.images
        images.bytes_per_second = BYTES_PER_SECOND / max(factor, 1e-6)
