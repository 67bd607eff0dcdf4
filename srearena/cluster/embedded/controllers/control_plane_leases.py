"""Leases of the control plane: identity of the API server, and leader election.

The API server's own lease lasts an hour; those of the leaders last fifteen seconds. They are renewed well before they
expire, but less often than the real ones (every two seconds), to save writes that carry no information.
"""

from __future__ import annotations

from base64 import b32encode
from hashlib import sha256

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.recorder import Recorder
from srearena.cluster.embedded.registry.admission.chain import AdmissionPending
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.identity import SUPERUSERS, User, component

LEASES = "leases.coordination.k8s.io"
LEADERS = ("kube-controller-manager", "kube-scheduler")
_NAMESPACE = "kube-system"
_LEADER_SECONDS, _LEADER_RENEWAL = 15, 10.0
_SERVER_SECONDS, _SERVER_RENEWAL = 3600, 600.0


class ControlPlaneLeases(Controller):
    name = "control-plane-leases"

    def start(self) -> None:
        self.clock.after(0.0, self._begin)

    def _begin(self) -> None:
        if self.client.get("namespaces", "", _NAMESPACE) is None:
            return
        host = self.world.control_plane_name
        for name in LEADERS:
            holder = f"{host}_{self.world.randomness.uid()}"
            lease = self._create(name, component(name), {"holderIdentity": holder}, {}, _LEADER_SECONDS)
            if lease is not None:
                recorder = Recorder(self.world, name, component(name), field_manager=name)
                recorder.event(lease, "Normal", "LeaderElection", f"{holder} became leader")
            self.clock.after(_LEADER_RENEWAL, self._renew, name, component(name), _LEADER_RENEWAL)
        digest = b32encode(sha256(host.encode()).digest()[:16]).decode().rstrip("=").lower()
        server = f"apiserver-{digest}"
        user = User("system:apiserver", (SUPERUSERS,))
        labels = {"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": host}
        self._create(
            server, user, {"holderIdentity": f"{server}_{self.world.randomness.uid()}"}, labels, _SERVER_SECONDS
        )
        self.clock.after(_SERVER_RENEWAL, self._renew, server, user, _SERVER_RENEWAL)

    def _create(self, name: str, user: User, spec: Obj, labels: Obj, seconds: int) -> Obj | None:
        now = self.clock.micro_timestamp()
        metadata: Obj = {"name": name, "namespace": _NAMESPACE}
        spec |= {"leaseDurationSeconds": seconds, "renewTime": now}
        if labels:
            metadata["labels"] = labels
        else:
            spec |= {"acquireTime": now, "leaseTransitions": 0}
        lease: Obj = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        try:
            return self.world.client(user, _program(name)).create(LEASES, lease)
        except ApiError:
            return None

    def _renew(self, name: str, user: User, period: float) -> None:
        self._write(name, user)
        self.clock.after(period, self._renew, name, user, period)

    def _write(self, name: str, user: User) -> None:
        """Renew the leases once; a write that a webhook refuses is retried at the next renewal."""
        client = self.world.client(user, _program(name))
        lease = client.get(LEASES, _NAMESPACE, name)
        if lease is None:
            return
        try:
            client.update(LEASES, {**lease, "spec": {**lease["spec"], "renewTime": self.clock.micro_timestamp()}})
        except AdmissionPending as pending:
            pending.ready.then(lambda: self._write(name, user))
        except ApiError:
            return


def _program(lease: str) -> str:
    return lease if lease in LEADERS else "kube-apiserver"
