"""Workloads that cannot be scheduled or are scaled to zero."""

from __future__ import annotations

from srearena.conductor.problems.injected import UNDO, InjectedProblem
from srearena.conductor.problems.registry import problem


@problem(
    "assign_to_non_existent_node",
    aliases=("assign_to_non_existent_node_social_net",),
    app="social_network",
    service="user-service",
)
class AssignToNonExistentNode(InjectedProblem):
    family = "assign_to_non_existent_node"
    difficulty = "easy"
    stages = ("detection", "localization", "analysis", "mitigation")
    fault = "assign_to_non_existent_node"
    explanation = "The Deployment {service} asks for a node named extra-node, which does not exist."
    remedy = (
        "kubectl -n {ns} patch deployment {service} --type=json "
        """-p '[{"op": "remove", "path": "/spec/template/spec/nodeSelector"}]'"""
    )


@problem("scale_pod_zero_social_net", app="social_network", service="user-service")
class ScalePodZero(InjectedProblem):
    family = "scale_pod_zero"
    difficulty = "easy"
    stages = ("detection", "localization", "analysis", "mitigation")
    fault = "scale_pods_to_zero"
    fault_type = "Operation Error"
    explanation = "The Deployment {service} was scaled to zero replicas."
    remedy = "kubectl -n {ns} scale deployment {service} --replicas=1"


@problem("pod_anti_affinity_deadlock", app="social_network", service="user-service")
class PodAntiAffinityDeadlock(InjectedProblem):
    family = "pod_anti_affinity_deadlock"
    fault = "pod_anti_affinity_deadlock"
    explanation = "The Deployment {service} wants more replicas than there are nodes, each on a node of its own."
    remedy = f"{UNDO}\nkubectl -n {{ns}} scale deployment {{service}} --replicas=1"


@problem("taint_no_toleration_social_network", app="social_network", service="user-service")
class TaintNoToleration(InjectedProblem):
    family = "taint_no_toleration"
    fault = "taint_no_toleration"
    explanation = "Every node is tainted dedicated=batch:NoSchedule, and {service} tolerates another value."
    remedy = "kubectl taint nodes --all dedicated=batch:NoSchedule-"


@problem("persistent_volume_affinity_violation", app="social_network", service="user-service")
class PersistentVolumeAffinityViolation(InjectedProblem):
    family = "persistent_volume_affinity_violation"
    difficulty = "hard"
    fault = "persistent_volume_affinity_violation"
    explanation = "The volume of {service} can be used on one node only, and {service} insists on another."
    remedy = (
        "kubectl -n {ns} patch deployment {service} --type=json "
        """-p '[{"op": "remove", "path": "/spec/template/spec/nodeSelector"}]'"""
    )
