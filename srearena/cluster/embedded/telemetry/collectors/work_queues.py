"""Metrics of the work queues of control loops, under the names that the real loops give their queues.

Keys are counted by the simulator's own loops. Those that real loops queue again and again although nothing changed are
added: the volume binder's resync, and the garbage collector, whose graph follows every write of an object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from srearena.cluster.embedded.controllers.api_services import ApiServices
from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.controllers.custom_resources import CustomResourceController
from srearena.cluster.embedded.instruments import Histogram
from srearena.cluster.embedded.telemetry.collectors.sections import Sections
from srearena.cluster.embedded.world import World

METRICS = (
    ("workqueue_adds_total", "counter", "Keys that were queued, by control loop."),
    ("workqueue_depth", "gauge", "Keys that wait for a worker, by control loop."),
    ("workqueue_retries_total", "counter", "Keys that were queued again after a failure, by control loop."),
    ("workqueue_queue_duration_seconds", "histogram", "Time that a key waits for a worker, by control loop."),
)
OF_SERVER = {
    ApiServices.name: "APIServiceRegistrationController",
    CustomResourceController.name: "crd_naming_condition_controller",
}
"""Control loops that run in the API server, by the names of their queues."""
_OF_OTHER_PROGRAMS = frozenset(("local-path-provisioner", "service-ip-address-allocator"))
"""Control loops that no program with metrics of its queues runs."""
_NAMES = {
    "attachdetach-controller": "pvcs",
    "certificate-controller": "certificate",
    "clusterrole-aggregation-controller": "ClusterRoleAggregator",
    "daemon-set-controller": "daemonset",
    "endpointslice-controller": "endpoint_slice",
    "endpointslicemirroring-controller": "endpoint_slice_mirroring",
    "ephemeral-volume-controller": "ephemeral_volume",
    "expand-controller": "volume_expand",
    "horizontal-pod-autoscaler": "horizontalpodautoscaler",
    "node-controller": "node_lifecycle_controller",
    "persistent-volume-binder": "claims",
    "pv-protection-controller": "pvprotection",
    "pvc-protection-controller": "pvcprotection",
    "replication-controller": "replicationmanager",
    "resourcequota-controller": "resourcequota_primary",
    "root-ca-cert-publisher": "root_ca_cert_publisher",
    "service-account-controller": "serviceaccount",
    "taint-eviction-controller": "noexec_taint_pod",
    "tokens-controller": "serviceaccount_tokens_secret",
    "ttl-after-finished-controller": "ttl_jobs_to_delete",
}
"""Names of queues in Kubernetes 1.34; of the other loops it is the name without `-controller`."""
_BINDER_RESYNC = 15.0
"""Seconds; --pvclaimbinder-sync-period of the controller manager, by default."""
_BOUNDS = tuple(10.0**power for power in range(-8, 2))
_MEDIAN = 0.000018
"""Seconds that a key waits for a worker in a quiet cluster."""


class _Resync:
    """Keys of all objects of a resource, queued at an interval."""

    def __init__(self, world: World, resource: str) -> None:
        self._world = world
        self._resource = resource
        self._rounds = int(world.clock.now / _BINDER_RESYNC)
        self._added = 0

    def total(self, now: float) -> int:
        rounds = int(now / _BINDER_RESYNC)
        self._added += (rounds - self._rounds) * self._world.store.count(self._resource)
        self._rounds = rounds
        return self._added


class _Queue:
    def __init__(self, name: str, controller: Controller | None, more: Callable[[float], int]) -> None:
        self.labels = {"name": name}
        self.waited = Histogram(_BOUNDS)
        self._controller = controller
        self._more = more
        self._depth = -1

    def write(self, sections: Sections, now: float) -> None:
        controller = self._controller
        added = self._more(now) + (controller.added if controller is not None else 0)
        if sections.fresh or self.waited.count != added:
            self.waited.observe_spread(added - self.waited.count, _MEDIAN, 0.9)
            sections.number("workqueue_adds_total", self.labels, added)
            sections.histogram("workqueue_queue_duration_seconds", self.labels, self.waited)
            retried = controller.retried if controller is not None else 0
            sections.number("workqueue_retries_total", self.labels, retried)
        depth = controller.depth() if controller is not None else 0
        if sections.fresh or depth != self._depth:
            self._depth = depth
            sections.number("workqueue_depth", self.labels, depth)


class WorkQueues:
    """The queues of one program."""

    def __init__(self, controllers: Mapping[str, Controller], world: World) -> None:
        self._queues: list[_Queue] = []
        for name, controller in controllers.items():
            if controller.watched and name not in _OF_OTHER_PROGRAMS:
                more = _nothing
                if name == "persistent-volume-binder":
                    more = _Resync(world, "persistentvolumeclaims").total
                    self._queues.append(_Queue("volumes", None, _Resync(world, "persistentvolumes").total))
                    self._queues.append(_Queue("garbage_collector_graph_changes", None, lambda _: world.store.revision))
                self._queues.append(_Queue(_NAMES.get(name, name.removesuffix("-controller")), controller, more))

    def write(self, sections: Sections, now: float) -> None:
        for queue in self._queues:
            queue.write(sections, now)


def _nothing(now: float) -> int:
    return 0
