"""Node heartbeats: the Lease every ten seconds, the status when it changes or every five minutes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from srearena.cluster.embedded.clock import Timer
from srearena.cluster.embedded.durations import format_micro_time
from srearena.cluster.embedded.kubelet.node.node_object import csi_node_object, node_object, node_status
from srearena.cluster.embedded.objects import Obj, condition, dig, meta
from srearena.cluster.embedded.registry.admission.chain import AdmissionPending
from srearena.cluster.embedded.registry.errors import AlreadyExists, ApiError

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.kubelet import Kubelet

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
PERIOD = 10.0
REPORT_PERIOD = 300.0
LEASES = "leases.coordination.k8s.io"
CSI_NODES = "csinodes.storage.k8s.io"


class Heartbeat:
    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet
        self._timer: Timer | None = None
        self._reported_at = 0.0
        self._reported: tuple[object, ...] = ()
        self._boot_id = ""
        """The boot ID the kubelet last reported."""
        self._unschedulable = False
        """Whether the node was cordoned at the last check."""
        self.not_ready: tuple[str, str] | None = None
        """Reason and message of the NotReady condition that the kubelet itself reports."""

    def start(self) -> None:
        """Register the node if it is missing, report its status, and schedule heartbeats."""
        self._register()
        became_ready = self.report()
        self._record_start(reported_ready=became_ready)
        self._renew()
        # Jitter: nodes that start together must not stay synchronised.
        self._timer = self._kubelet.clock.after(self._first_delay(), self._tick)

    def _first_delay(self) -> float:
        return self._kubelet.jitter(PERIOD / 2, 1.0)

    def _record_start(self, *, reported_ready: bool) -> None:
        """Record the events of a starting kubelet."""
        kubelet, machine = self._kubelet, self._kubelet.machine
        kubelet.node_event("Normal", "Starting", "Starting kubelet.")
        for reason in ("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"):
            kubelet.node_event("Normal", reason, f"Node {kubelet.name} status is now: {reason}")
        kubelet.node_event("Normal", "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")
        if self._boot_id not in ("", machine.boot_id):
            text = f"Node {kubelet.name} has been rebooted, boot id: {machine.boot_id}"
            kubelet.node_event("Warning", "Rebooted", text)
        if self._boot_id != machine.boot_id and not reported_ready:
            kubelet.node_event("Normal", "NodeReady", f"Node {kubelet.name} status is now: NodeReady")
        self._boot_id = machine.boot_id

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        kubelet = self._kubelet
        kubelet.every_ten_seconds()
        if kubelet.online:
            self._renew()
            self._note_cordon()
            due = kubelet.clock.now - self._reported_at >= REPORT_PERIOD
            if due or self._state() != self._reported or self._is_given_up():
                self.report()
        self._timer = kubelet.clock.after(PERIOD, self._tick)

    def _note_cordon(self) -> None:
        kubelet = self._kubelet
        node = kubelet.client.get("nodes", "", kubelet.name)
        unschedulable = bool(dig(node, "spec", "unschedulable"))
        if unschedulable != self._unschedulable:
            self._unschedulable = unschedulable
            reason = "NodeNotSchedulable" if unschedulable else "NodeSchedulable"
            kubelet.node_event("Normal", reason, f"Node {kubelet.name} status is now: {reason}")

    def _is_given_up(self) -> bool:
        """Whether the node lifecycle controller has marked the node as unknown."""
        node = self._kubelet.client.get("nodes", "", self._kubelet.name)
        return any(row.get("status") == "Unknown" for row in dig(node, "status", "conditions", default=()))

    def _register(self) -> None:
        kubelet = self._kubelet
        if kubelet.client.get("nodes", "", kubelet.name) is None:
            with suppress(AlreadyExists):
                kubelet.client.create("nodes", node_object(kubelet.machine))
        node = kubelet.client.get("nodes", "", kubelet.name)
        if node is not None and kubelet.client.get(CSI_NODES, "", kubelet.name) is None:
            with suppress(ApiError):
                kubelet.client.create(CSI_NODES, csi_node_object(node))

    def _state(self) -> tuple[object, ...]:
        machine = self._kubelet.machine
        return (self._kubelet.pressures, machine.images.generation, machine.boot_id, self.not_ready)

    def report(self) -> bool:
        """Write the node's status; returns whether it became ready again, which is recorded as an event."""
        kubelet = self._kubelet
        node = kubelet.client.get("nodes", "", kubelet.name)
        if node is None or not kubelet.online:
            return False
        before = node.get("status") or {}
        status = node_status(kubelet.machine, kubelet.configuration, kubelet.pressures, before, ready=self.not_ready)
        self._reported_at = kubelet.clock.now
        self._reported = self._state()
        try:
            kubelet.client.set_status("nodes", node, status)
        except AdmissionPending as pending:
            pending.ready.then(self.report)
            return False
        except ApiError:
            self._reported = ()
            return False
        ready_before = condition(node, "Ready")
        recovered = ready_before is not None and ready_before.get("status") != "True" and self.not_ready is None
        if recovered:
            kubelet.node_event("Normal", "NodeReady", f"Node {kubelet.name} status is now: NodeReady")
        return recovered

    def _renew(self) -> None:
        kubelet = self._kubelet
        now = format_micro_time(kubelet.machine.now)
        lease = kubelet.client.get(LEASES, LEASE_NAMESPACE, kubelet.name)
        try:
            if lease is None:
                kubelet.client.create(LEASES, self._lease(now))
                return
            renewed = {**lease, "spec": {**lease["spec"], "renewTime": now}}
            kubelet.client.update(LEASES, renewed)
        except AdmissionPending as pending:
            pending.ready.then(self._renew)
        except ApiError:
            return

    def _lease(self, now: str) -> Obj:
        node = self._kubelet.client.get("nodes", "", self._kubelet.name)
        owners = []
        if node is not None:
            owners = [{"apiVersion": "v1", "kind": "Node", "name": self._kubelet.name, "uid": meta(node)["uid"]}]
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._kubelet.name, "namespace": LEASE_NAMESPACE, "ownerReferences": owners},
            "spec": {
                "holderIdentity": self._kubelet.name,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": now,
            },
        }
