"""Admission policies (CEL) that refuse what has been running for long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import components, itself_and_callers
from srearena.conductor.problems.variation import Choice
from srearena.service.kubernetes import Obj

POLICY = "pinned-images"
_GROUP = "admissionregistration.k8s.io"
_BINDING = "ValidatingAdmissionPolicyBinding"


@problem(
    "admission_policy_enforced_hotel_reservation",
    app="hotel_reservation",
    service="recommendation",
    victims=("recommendation", "frontend"),
)
class AdmissionPolicyEnforced(OriginProblem):
    """Adds a policy that only audits: pods that run are not asked again, so its enforcement shows with the next pod."""

    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": itself_and_callers}
    affects_new_pods = True
    family = "admission_policy_enforced"
    fault = "admission_policy_enforced"
    fault_type = "Operation Error"
    contributing = (f"ValidatingAdmissionPolicy/{POLICY}",)  # the policy has the name of its binding
    root_kind = _BINDING
    origin = POLICY
    origin_namespace = ""
    explanation = (
        f"The binding of the admission policy {POLICY} was switched from auditing to denying while no image of the "
        "application is pinned by a digest: no pod is admitted, and that of {service}, once deleted, does not return."
    )
    remedy = f"""\
kubectl delete {_BINDING.lower()} {POLICY}
kubectl -n {{ns}} rollout restart deployment/{{service}}"""

    def set_up(self) -> None:
        for obj in _auditing(self.namespace):
            self.kubernetes.apply(obj)


def _auditing(namespace: str) -> list[Obj]:
    """The policy for all new pods of a namespace, with a binding that notes violations in the audit log."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [
            {
                "expression": "object.spec.containers.all(c, c.image.contains('@sha256:'))",
                "message": "images must be pinned by digest",
            }
        ],
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding = {
        "policyName": POLICY,
        "validationActions": ["Audit"],
        "matchResources": {"namespaceSelector": selector},
    }
    return [
        {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": {"name": POLICY}, "spec": spec}
        for kind, spec in (("ValidatingAdmissionPolicy", policy), (_BINDING, binding))
    ]
