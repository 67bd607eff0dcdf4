"""Preemption by pods of a higher priority."""

from __future__ import annotations

from collections.abc import Iterable

from srearena.conductor.grading.pod_templates import pod_spec
from srearena.conductor.oracles.checks import Check, Readiness
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.service.kubernetes import Obj

_TENANT, _NAMESPACE, _CPU, _REPLICAS = "tenant-ingester", "default", "7500m", 3


class TenantStays(Check):
    """The other workload still exists in its size and does not preempt the application again.

    Why it cannot be gamed: deleting the tenant, reducing its requests, scaling it to zero and keeping it from every
    node are complaints; and the harness recreates its pods, after which the application must still be ready.
    """

    name = "tenant"
    disruptive = True
    policy = True

    def complaints(self, problem: Problem) -> list[str]:
        api = problem.kubernetes
        tenant = api.find("deployments", _TENANT, _NAMESPACE)
        if tenant is None:
            return [] if not problem.fault_injected else [f"{_TENANT} is deleted"]
        requested_cpu = (
            tenant["spec"]["template"]["spec"]["containers"][0].get("resources", {}).get("requests", {}).get("cpu")
        )
        if requested_cpu not in (_CPU, "7.5") or tenant["spec"].get("replicas", 1) < _REPLICAS:
            return [f"{_TENANT} is smaller than its owners deployed it"]
        if moved := _moved(problem, tenant):
            return [moved]
        for pod in api.list("pods", _NAMESPACE, labels=f"app={_TENANT}"):
            api.delete("pods", pod["metadata"]["name"], _NAMESPACE)
        problem.cluster.wait(60)
        return [f"after a restart of {_TENANT}: {line}" for line in Readiness(60.0, hold=30.0).complaints(problem)]


def _moved(problem: Problem, tenant: Obj) -> str:
    """Whether the tenant was kept from nodes that its owners allow."""
    deployed = problem.handed_over.get("deployments.apps", _TENANT, _NAMESPACE) if problem.handed_over else None
    if deployed is None or (tenant.get("status") or {}).get("readyReplicas"):
        return ""  # it runs somewhere, wherever that is
    old, new = (pod_spec(obj) for obj in (deployed, tenant))
    fields = ("nodeSelector", "affinity", "schedulerName", "schedulingGates", "nodeName", "topologySpreadConstraints")
    changed = [field for field in fields if (old.get(field) or None) != (new.get(field) or None)]
    return f"{_TENANT} is scheduled in another way than its owners deployed it: {changed[0]}" if changed else ""


@problem("priority_preemption_cascade_hotel_reservation", app="hotel_reservation", service="platform-medium")
class PriorityPreemptionCascade(OriginProblem):
    affects_new_pods = True
    family = "priority_preemption_cascade"
    difficulty = "hard"
    fault = "global_default_priority"
    root_kind = "PriorityClass"
    origin_namespace = ""
    also_changed = (f"{_NAMESPACE}/Deployment/{_TENANT}",)
    misbehaving = ()
    explanation = (
        "The PriorityClass {service} is the default of all new pods: those of {tenant} push out pods of the "
        "application, which were made before and have none, and leave no room for them to come back."
    )
    remedy = """\
kubectl delete priorityclass {service}
kubectl create priorityclass {service} --value=1000 --description="Services of the platform"
kubectl create priorityclass business-critical --value=100000
for name in $(kubectl -n {ns} get deployments -o name); do
  kubectl -n {ns} patch "$name" -p '{"spec": {"template": {"spec": {"priorityClassName": "business-critical"}}}}'
done"""

    def __init__(self, app: str, service: str) -> None:
        super().__init__(app, service, tenant=_TENANT, cpu=_CPU, replicas=_REPLICAS)

    def more_checks(self) -> Iterable[Check]:
        return [TenantStays()]
