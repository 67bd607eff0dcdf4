"""Workloads that cannot be scheduled or are scaled to zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from srearena.conductor.problems.injected import POD, RESTORE, InjectedProblem
from srearena.conductor.problems.metadata import Entity, Origin
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import components
from srearena.conductor.problems.variation import Choice


@problem(
    "assign_to_non_existent_node",
    aliases=("assign_to_non_existent_node_social_net",),
    app="social_network",
    service="user-service",
)
class AssignToNonExistentNode(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "node": ("extra-node", "worker-9", "gpu-node-1")}
    family = "assign_to_non_existent_node"
    difficulty = "easy"
    fault = "assign_to_non_existent_node"
    explanation = "The Deployment {service} asks for a node that does not exist."
    remedy = (
        "kubectl -n {ns} patch deployment {service} --type=json "
        """-p '[{"op": "remove", "path": "/spec/template/spec/nodeSelector"}]'"""
    )


@problem("scale_pod_zero_social_net", app="social_network", service="user-service")
class ScalePodZero(InjectedProblem):
    varies_further: ClassVar[Mapping[str, Choice]] = {"service": components}
    family = "scale_pod_zero"
    difficulty = "easy"
    fault = "scale_pods_to_zero"
    fault_type = "Operation Error"
    explanation = "The Deployment {service} was scaled to zero replicas."
    remedy = "kubectl -n {ns} scale deployment {service} --replicas=1"


@problem("pod_anti_affinity_deadlock", app="social_network", service="user-service")
class PodAntiAffinityDeadlock(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components}
    family = "pod_anti_affinity_deadlock"
    fault = "pod_anti_affinity_deadlock"
    explanation = "The Deployment {service} wants more replicas than there are nodes, each on a node of its own."
    remedy = RESTORE
    restores = (f"{POD}/affinity", "/spec/replicas")


@problem("taint_no_toleration_social_network", app="social_network", service="user-service")
class TaintNoToleration(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components}
    affects_new_pods = True
    family = "taint_no_toleration"
    fault = "taint_no_toleration"
    explanation = "Every node is tainted dedicated=batch:NoSchedule, and {service} tolerates another value."
    remedy = "kubectl taint nodes --all dedicated=batch:NoSchedule-"

    @property
    def origins(self) -> Sequence[Origin]:
        """The workload with the wrong toleration, and the nodes, which have the names that the cluster gave them."""
        nodes = self.baseline.of("nodes") if self.baseline is not None else ()
        changed = (self.root(self.services[0]), *(Entity("Node", node["metadata"]["name"]) for node in nodes))
        return (Origin(changed),)


@problem("persistent_volume_affinity_violation", app="social_network", service="user-service")
class PersistentVolumeAffinityViolation(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components}
    family = "persistent_volume_affinity_violation"
    difficulty = "hard"
    fault = "persistent_volume_affinity_violation"
    contributing = ("PersistentVolumeClaim/{service}-data", "PersistentVolume/{service}-data")
    explanation = "The volume of {service} can be used on one node only, and {service} insists on another."
    remedy = (
        "kubectl -n {ns} patch deployment {service} --type=json "
        """-p '[{"op": "remove", "path": "/spec/template/spec/nodeSelector"}]'"""
    )
