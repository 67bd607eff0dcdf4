"""A machine: processor, memory, disk, addresses, and the container runtime on it.

It does not depend on its kubelet: containers keep running when the kubelet is stopped, and only a reboot ends them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network
from random import Random
from typing import TYPE_CHECKING

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.component_logs import ComponentLogs
from srearena.cluster.embedded.machine import host_views
from srearena.cluster.embedded.machine.containers.container import KernelFacts
from srearena.cluster.embedded.machine.files import sysctl
from srearena.cluster.embedded.machine.files.host_tree import host_tree
from srearena.cluster.embedded.machine.files.inodes import Space
from srearena.cluster.embedded.machine.images.catalogue import Catalogue
from srearena.cluster.embedded.machine.images.program import ProgramFinder
from srearena.cluster.embedded.machine.images.store import ImageStore
from srearena.cluster.embedded.machine.journal import Journal
from srearena.cluster.embedded.machine.meter import ResourceMeter
from srearena.cluster.embedded.machine.networking.pod_network import NoNetwork, PodNetwork
from srearena.cluster.embedded.machine.networking.resolver_files import CLUSTER_DNS, CLUSTER_DOMAIN
from srearena.cluster.embedded.machine.networking.sockets import HttpHandler, NetworkNamespace
from srearena.cluster.embedded.machine.system_services import SystemService
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.quantity import parse

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
    from srearena.cluster.embedded.machine.files.mounted_volume import MountedVolume

GIB = 1024**3
CONTROL_PLANE = "control-plane"
CONTAINER_RUNTIME = "containerd://2.1.3"
OS_IMAGE = "Debian GNU/Linux 12 (bookworm)"
SYSTEM_MEMORY = 420 * 1024**2
"""Resident memory of the kernel, the runtime and the kubelet (chosen: a kind node idles at about 400 MiB)."""
SYSTEM_DISK = 6 * GIB
"""Disk space of the operating system."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """The hardware of a node and how it registers itself."""

    name: str
    role: str = ""
    """`control-plane`, or nothing for a worker."""
    cpu: str | float = 4
    memory: str | int = 16 * GIB
    pods: int = 110
    disk: str | int = 100 * GIB
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Obj] = ()

    @property
    def is_control_plane(self) -> bool:
        return self.role == CONTROL_PLANE

    @property
    def cores(self) -> float:
        return parse(self.cpu).as_float() if isinstance(self.cpu, str) else float(self.cpu)

    @property
    def memory_bytes(self) -> int:
        return parse(self.memory).value()

    @property
    def disk_bytes(self) -> int:
        return parse(self.disk).value()


class AddressesExhausted(Exception):
    """Every address of the node's pod range is taken."""


class Machine:
    def __init__(
        self, spec: NodeSpec, number: int, clock: Clock, random: Random, catalogue: Catalogue, programs: ProgramFinder
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.cores = spec.cores
        self.memory = spec.memory_bytes
        self.clock = clock
        self.random = random
        self.address = f"172.18.{(number + 2) // 256}.{(number + 2) % 256}"
        self.pod_range = IPv4Network(f"10.{244 + number // 256}.{number % 256}.0/24")
        self.gateway = str(self.pod_range[1])
        """The machine's own address in its pods' network: the source of its probes."""
        self.booted_at = clock.now
        self.boot_id = new_boot_id(random)
        self.machine_id = f"{random.getrandbits(128):032x}"
        self.system_uuid = new_boot_id(random)
        self.clock_skew = 0.0
        """Seconds by which this machine's clock is ahead."""
        self.powered = True
        self.contended = False
        """Whether the CPU demand exceeds the cores."""
        self.disk = Space(spec.disk_bytes, used=min(SYSTEM_DISK, spec.disk_bytes // 10))
        self.ballast = 0
        """Bytes on disk that belong to no pod."""
        self.own_load = ResourceMeter(clock)
        """Processes of the machine itself that belong to no pod."""
        self.disk_factor = 1.0
        """Factor of the disk latency."""
        self.name_servers: tuple[str, ...] = (CLUSTER_DNS,)
        """What the kubelet writes into the resolv.conf of pods with the cluster's DNS policy."""
        self.domain = CLUSTER_DOMAIN
        self.oom_kills = 0
        """Processes that the kernel killed since the machine exists because a container was out of memory."""
        self.memory_ballast = 0
        """Bytes of memory used by processes outside of pods."""
        self.journal = Journal()
        self.services: dict[str, SystemService] = {}
        """What the machine's service manager runs, by name."""
        self.files = host_tree(spec.name)
        self.images = ImageStore(clock, random, catalogue, self.disk)
        self.programs = programs
        self.namespace = NetworkNamespace(clock, (self.address, self.gateway))
        self.sandboxes: dict[str, Sandbox] = {}
        """By pod UID, the newest of each."""
        self.network: PodNetwork = NoNetwork()
        self.volumes: dict[str, dict[str, MountedVolume]] = {}
        """By pod UID and name; volumes stay mounted without a kubelet."""
        self.handlers: dict[int, HttpHandler] = {}
        """HTTP handlers of control-plane programs by port, implemented by the simulator."""
        self.component_logs = ComponentLogs()
        """Where the control plane's programs log what the simulator's components do for them."""
        self.root_certificate = b""
        """The certificate (PEM) of the authority that signed those of the control plane."""
        self.live: dict[str, ContainerRecord] = {}
        """The containers that run now, by id."""
        self.on_container: Callable[[Sandbox, ContainerRecord], object] | None = None
        """Called with every container that is created."""
        self._addresses: dict[str, Sandbox] = {}
        self._last_address = 1
        host_views.install(self)
        self._kernel = KernelFacts(survey=self.survey)
        """As last read; traffic reads it for every server at every step."""

    @property
    def kernel(self) -> KernelFacts:
        cpus = int(self.cores) or 1
        facts = self._kernel
        if facts.cpus != cpus or facts.memory != self.memory or facts.booted_at != self.booted_at:
            facts = self._kernel = replace(facts, cpus=cpus, memory=self.memory, booted_at=self.booted_at)
        return facts

    @property
    def now(self) -> float:
        """The time of this machine's clock."""
        return self.clock.now + self.clock_skew

    def forget_settings(self) -> None:
        """Give the kernel's parameters their values of a boot."""
        self._kernel = replace(self._kernel, settings={})
        for name, value in sysctl.boot_values(self.namespace.settings).items():
            if self.namespace.configure is not None:
                self.namespace.configure(name, value)
        self.namespace.settings.clear()

    def plug_into(self, network: PodNetwork) -> None:
        """Connect the machine, with the pods that are on it."""
        self.network = network
        network.attach_node(self.name, self.namespace, str(self.pod_range))
        for sandbox in self.sandboxes.values():
            sandbox.plug_in()

    def sandbox_at(self, address: str) -> Sandbox | None:
        """The pod that has an address of this machine's range."""
        return self._addresses.get(address)

    def take_address(self, sandbox: Sandbox) -> str:
        """The next free address, round robin, as the host-local plug-in assigns it."""
        size = self.pod_range.num_addresses
        for step in range(1, size):
            offset = (self._last_address + step) % size
            if offset in (0, 1, size - 1):
                continue
            address = str(self.pod_range[offset])
            if address not in self._addresses:
                self._last_address = offset
                self._addresses[address] = sandbox
                return address
        first, last = self.pod_range[1], self.pod_range[size - 2]
        raise AddressesExhausted(f"no IP addresses available in range set: {first}-{last}")

    def give_address_back(self, address: str) -> None:
        self._addresses.pop(address, None)

    # --- use -------------------------------------------------------------------------------------------------

    def survey(self) -> tuple[int, float]:
        """Bytes of memory in use that cannot be reclaimed, and the CPU demand of the containers in cores."""
        memory = SYSTEM_MEMORY + self.memory_ballast
        wanted = self.own_load.wanted_cores
        for record in self.live.values():
            if record.container is not None:
                meter = record.container.meter
                memory += meter.working_set
                wish = meter.wanted_cores
                wanted += wish if meter.cpu_limit is None or wish < meter.cpu_limit else meter.cpu_limit
        return memory, wanted

    def memory_working_set(self) -> int:
        """Bytes of memory in use that cannot be reclaimed: the system's, and every container's."""
        return self.survey()[0]


def new_boot_id(random: Random) -> str:
    """An identifier of the kind the kernel makes at every boot."""
    text = f"{random.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"
