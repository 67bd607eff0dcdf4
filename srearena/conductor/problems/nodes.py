"""Faults of nodes and their hardware."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from srearena.conductor.oracles.checks import Intent, Readiness
from srearena.conductor.oracles.mitigation import MitigationOracle, usual_checks
from srearena.conductor.problems.injected import InjectedProblem
from srearena.conductor.problems.metadata import Entity, Level, Origin
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import components, stores
from srearena.conductor.problems.variation import Choice
from srearena.generators.certificates import Authority, Certificate
from srearena.generators.fault.actors import deployment, service
from srearena.generators.fault.inject_node import FORTIO, FORTIO_PORT
from srearena.generators.fault.steps import pods_of, workers
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj
from srearena.utils.decorators import mark_fault_injected

_BIND_ELSEWHERE = """\
node=$(kubectl -n {ns} get deployment {service} \
  -o jsonpath='{.spec.template.spec.nodeSelector.kubernetes\\.io/hostname}')
other=$(kubectl get nodes --no-headers -l '!node-role.kubernetes.io/control-plane' | grep -v "^$node " | cut -d' ' -f1 \
  | head -1)
kubectl -n {ns} patch deployment {service} --type=json \
  -p '[{"op": "replace", "path": "/spec/template/spec/nodeSelector/kubernetes.io~1hostname", "value": "'"$other"'"}]'
kubectl -n {ns} rollout status deployment/{service} --timeout=90s"""
"""Let the workload that suffers run on another machine."""


_EVICTION_SECONDS = 30.0
"""A kubelet under pressure evicts one pod and waits until it has ended, which takes the usual grace period."""
_EVICTIONS = 60


class MachineProblem(InjectedProblem):
    """Kubernetes has no API to repair a machine; what suffers from it can be moved to another one."""

    affects_new_pods = True
    level: Level = "node"
    runs_on = ("embedded",)
    remedy = _BIND_ELSEWHERE

    def bind(self) -> None:
        """Bind the workload to the node it is on: otherwise a restart could move it away by chance."""
        node = self.machines(Testbed.of(self.namespace, self.cluster, self.kubernetes))[0]
        bound = {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}}}}
        self.kubernetes.patch("deployments", self.services[0], bound, self.namespace)
        self.cluster.wait(60)

    @abstractmethod
    def machines(self, bed: Testbed) -> list[str]:
        """The affected nodes."""

    @mark_fault_injected
    def inject_fault(self) -> None:
        names = self.machines(Testbed.of(self.namespace, self.cluster, self.kubernetes))
        self.faulty_service = names
        super().inject_fault()

    @property
    def origins(self) -> Sequence[Origin]:
        """The nodes, which are chosen when the fault is injected, and what runs on them."""
        nodes = self.faulty_services if self.fault_injected else ()
        return tuple(self.origin_at(Entity("Node", name), self.services[0]) for name in nodes)


class IrreparableMachine(MachineProblem):
    """Nothing can be moved away, and the machine cannot be repaired from here: the agent must only do no harm."""

    repairable = False
    remedy = ""

    def __init__(self, app: str, service: str | Sequence[str], **options: Any) -> None:
        super().__init__(app, service, **options)
        self.mitigation_oracle = MitigationOracle(self, checks=[Intent()])


@problem("kubelet_crash", app="astronomy_shop", service="frontend")
class KubeletCrash(IrreparableMachine):
    """No machine is left."""

    family = "kubelet_crash"
    fault = "kubelet_crash"
    fault_type = "Operation Error"
    misbehaving = ()
    explanation = "The kubelet of every worker stopped: nodes are not ready, and what runs there is not looked after."

    def machines(self, bed: Testbed) -> list[str]:
        return workers(bed)


@problem("kubelet_eviction_threshold_misconfig", app="astronomy_shop", service="currency")
class EvictionThreshold(MachineProblem):
    """Adds a workload that can run on one node only and fails with it."""

    varies: ClassVar[Mapping[str, Choice]] = {"service": components}
    family = "kubelet_eviction_threshold_misconfig"
    fault = "eviction_threshold"
    explanation = (
        "The kubelet of the node that {service} is bound to is told to keep nearly all of its disk free: it reports "
        "pressure though there is room, evicts what runs there and takes nothing new."
    )

    def __init__(self, app: str, service: str | Sequence[str], **options: Any) -> None:
        super().__init__(app, service, **options)
        # A DaemonSet has a pod on the broken node that cannot become ready there.
        readiness = Readiness(resources=("deployments.apps", "statefulsets.apps"))
        checks = [check for check in usual_checks(readiness) if not check.disruptive]
        self.mitigation_oracle = MitigationOracle(self, checks=checks)

    def machines(self, bed: Testbed) -> list[str]:
        return [pods_of(bed, self.services[0])[0]["spec"]["nodeName"]]

    def set_up(self) -> None:
        self.bind()

    @mark_fault_injected
    def inject_fault(self) -> None:
        """Break the node, and wait until it has evicted what it will, one pod every half minute: a pod that is evicted
        after the agent's repair would count against it, and the node cannot be repaired from here."""
        super().inject_fault()
        for _ in range(_EVICTIONS):
            if not self._evictable():
                break
            self.cluster.wait(_EVICTION_SECONDS)

    def _evictable(self) -> list[str]:
        """The pods of the application that still run on the node; those of DaemonSets come back to it for ever."""
        return [
            pod["metadata"]["name"]
            for namespace in self.app.namespaces
            for pod in self.kubernetes.list("pods", namespace)
            if pod["spec"].get("nodeName") in self.faulty_services
            and pod["status"].get("phase") not in ("Failed", "Succeeded")
            and all(owner["kind"] != "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or ())
        ]


@problem("latent_sector_error", app="hotel_reservation", service="mongodb-rate")
class LatentSectorError(IrreparableMachine):
    """The volumes of the databases are on the broken disk."""

    varies: ClassVar[Mapping[str, Choice]] = {"service": stores}
    family = "latent_sector_error"
    level = "hardware"
    fault = "disk_errors"
    fault_type = "Network/Storage Issue"
    explanation = (
        "The disk of the node that {service} is on answers with errors: databases there end, and do not start."
    )

    def machines(self, bed: Testbed) -> list[str]:
        return [pods_of(bed, self.services[0])[0]["spec"]["nodeName"]]


_TOKENS, _CLIENT = "token-service", "token-check"


@problem("node_clock_drift_hotel_reservation", app="hotel_reservation", service=_CLIENT)
class ClockDrift(MachineProblem):
    """Adds a TLS server and a client."""

    family = "node_clock_drift"
    difficulty = "hard"
    fault = "clock_drift"
    explanation = (
        f"The clock of the node that {{service}} is bound to is thirty days ahead: to programs there the certificate "
        f"of {_TOKENS}, which is good for two more weeks, has expired."
    )

    def machines(self, bed: Testbed) -> list[str]:
        return [pods_of(bed, self.services[0])[0]["spec"]["nodeName"]]

    def set_up(self) -> None:
        today = datetime.fromisoformat(self.kubernetes.now()).replace(hour=0, minute=0, second=0, microsecond=0)
        cluster = self.kubernetes.get("namespaces", "kube-system")["metadata"]["uid"]
        authority = Authority("Platform CA", cluster, today - timedelta(days=200))
        host = f"{_TOKENS}.{self.namespace}.svc"
        certificate = authority.issue(host, today - timedelta(days=76), today + timedelta(days=14))
        for obj in _tls_pair(self.namespace, host, certificate, authority.pem):
            self.kubernetes.apply(obj)
        self.cluster.wait(60)
        self.bind()


def _tls_pair(namespace: str, host: str, certificate: Certificate, authority: str) -> list[Obj]:
    """A server with that certificate, and a client that is ready while it accepts the certificate."""
    mount = [{"name": "tls", "mountPath": "/tls", "readOnly": True}]
    server = {
        "name": "server",
        "image": "registry.k8s.io/e2e-test-images/agnhost:2.53",
        "args": ["webhook", "--tls-cert-file=/tls/tls.crt", "--tls-private-key-file=/tls/tls.key", "--port=8443"],
        "volumeMounts": mount,
    }
    ask = ["curl", "-sSf", "--max-time", "5", "--cacert", "/tls/ca.crt", f"https://{host}:8443/readyz"]
    client = {
        "name": "client",
        "image": "curlimages/curl:8.5.0",
        "command": ["sleep", "infinity"],
        "readinessProbe": {"exec": {"command": ask}, "periodSeconds": 10, "timeoutSeconds": 6},
        "volumeMounts": mount,
    }
    volumes = [{"name": "tls", "secret": {"secretName": f"{_TOKENS}-tls"}}]
    secret: Obj = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{_TOKENS}-tls", "namespace": namespace},
        "stringData": {"tls.crt": certificate.certificate, "tls.key": certificate.key, "ca.crt": authority},
    }
    return [
        secret,
        deployment(_TOKENS, namespace, {"containers": [server], "volumes": volumes}),
        service(_TOKENS, namespace, 8443),
        deployment(_CLIENT, namespace, {"containers": [client], "volumes": volumes}),
    ]


@problem(
    "node_conntrack_exhaustion_hotel_reservation",
    app="hotel_reservation",
    service="frontend",
    victims=("frontend",),
)
class ConntrackExhaustion(OriginProblem):
    """Adds a gateway, which is then load-tested."""

    affects_new_pods = True
    family = "node_conntrack_exhaustion"
    level = "node"
    difficulty = "hard"
    fault = "conntrack_exhaustion"
    fault_type = "Operation Error"
    origin = "gateway-soak"
    explanation = (
        "The pods of gateway-soak keep more connections open than the connection tracking table of their node has room "
        "for: the first packet of every new one is dropped there, also of those to {service}."
    )
    remedy = "kubectl -n {ns} delete deployment gateway-soak"

    def set_up(self) -> None:
        container = {"name": "fortio", "image": FORTIO, "ports": [{"containerPort": FORTIO_PORT}]}
        objects = (
            deployment("rpc-gateway", self.namespace, {"containers": [container]}),
            service("rpc-gateway", self.namespace, FORTIO_PORT),
        )
        for obj in objects:
            self.kubernetes.apply(obj)
        self.cluster.wait(45)
