"""Tenants that take the processor of a machine from all other pods on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from srearena.conductor.oracles.checks import Traffic
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import callers, components
from srearena.conductor.problems.variation import Choice
from srearena.generators.fault.actors import deployment
from srearena.generators.fault.steps import pods_of
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

_TENANT = "thumbnail-batch"
_STRESS = "polinux/stress:1.0.4"
_LIMIT = "1"


@problem(
    "noisy_neighbour_social_network",
    app="social_network",
    service="post-storage-service",
    victims=("compose-post-service", "nginx-thrift"),
)
class NoisyNeighbour(OriginProblem):
    """The tenant is there from the start, with one busy thread and a limit: to stop it is no repair."""

    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": callers}
    family = "noisy_neighbour"
    difficulty = "hard"
    fault = "noisy_neighbour"
    origin = _TENANT
    contributing = ("Deployment/{service}",)
    also = (Traffic,)
    explanation = (
        f"The Deployment {_TENANT} lost its CPU limit and runs sixty-four busy threads on the node of {{service}}: "
        "what requests no CPU there has hardly any."
    )
    remedy = f"""\
kubectl -n {{ns}} set resources deployment {_TENANT} --limits=cpu={_LIMIT}
kubectl -n {{ns}} rollout status deployment {_TENANT} --timeout=90s"""

    def __init__(self, app: str, service: str, victims: tuple[str, ...]) -> None:
        super().__init__(app, service, victims, tenant=_TENANT)

    def set_up(self) -> None:
        """Deploy the tenant on the node of the target, where its data is."""
        bed = Testbed.of(self.namespace, self.cluster, self.kubernetes)
        node = pods_of(bed, self.services[0])[0]["spec"]["nodeName"]
        container: Obj = {
            "name": "encoder",
            "image": _STRESS,
            "command": ["sh", "-c", "exec stress --cpu $THREADS"],
            "env": [{"name": "THREADS", "value": "1"}],
            "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}, "limits": {"cpu": _LIMIT}},
        }
        pod = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}
        self.kubernetes.apply(deployment(_TENANT, self.namespace, pod))
        self.cluster.wait(30)
