"""Admission policies (CEL) that refuse what has been running for long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import components, itself_and_callers
from srearena.conductor.problems.variation import Choice
from srearena.generators.fault.inject_control import REGISTRIES
from srearena.service.kubernetes import Obj

POLICY = "pinned-images"
_GROUP = "admissionregistration.k8s.io"
_BINDING = "ValidatingAdmissionPolicyBinding"
_RETIRED = "registry.example.com/retired/"
_NEW_PODS = {
    "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
}


@problem(
    "admission_policy_enforced_social_network",
    app="social_network",
    service="text-service",
    victims=("text-service", "compose-post-service", "nginx-thrift"),
)
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


@problem(
    "admission_policy_parameters_astronomy_shop",
    app="astronomy_shop",
    service="recommendation",
    victims=("recommendation", "frontend"),
)
@problem(
    "admission_policy_parameters_hotel_reservation",
    app="hotel_reservation",
    service="profile",
    victims=("profile", "frontend"),
)
class AdmissionPolicyParameters(OriginProblem):
    """Adds a policy that has always denied; it is unchanged, and so is its binding, but not what it compares with."""

    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": itself_and_callers}
    affects_new_pods = True
    family = "admission_policy_parameters"
    difficulty = "hard"
    fault = "admission_policy_parameters"
    fault_type = "Misconfiguration"
    contributing = (f"ValidatingAdmissionPolicy/{REGISTRIES}", f"{_BINDING}/{REGISTRIES}")
    root_kind = "ConfigMap"
    origin = REGISTRIES
    explanation = (
        f"The ConfigMap {REGISTRIES} of the namespace, which an admission policy compares images with, lists the "
        "registry that the application comes from: its pods are not admitted, and that of {service}, once deleted, "
        "does not return."
    )
    remedy = f"""\
kubectl -n {{ns}} patch configmap {REGISTRIES} --type=merge -p '{{"data":{{"prefixes":"{_RETIRED}"}}}}'
kubectl -n {{ns}} rollout restart deployment/{{service}}"""

    def set_up(self) -> None:
        for obj in _comparing(self.namespace):
            self.kubernetes.apply(obj)


def _comparing(namespace: str) -> list[Obj]:
    """The policy for all new pods of a namespace, with the list there that it compares their images with."""
    policy = {
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": _NEW_PODS,
        "validations": [
            {
                "expression": "!object.spec.containers.exists(c, "
                "params.data.prefixes.split(' ').exists(p, c.image.startsWith(p)))",
                "message": "images must not come from a blocked registry",
            }
        ],
    }
    binding = {
        "policyName": REGISTRIES,
        "validationActions": ["Deny"],
        "paramRef": {"name": REGISTRIES, "parameterNotFoundAction": "Deny"},
        "matchResources": _only(namespace),
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": REGISTRIES, "namespace": namespace},
            "data": {"prefixes": _RETIRED},
        },
        *_policy_and_binding(REGISTRIES, policy, binding),
    ]


def _auditing(namespace: str) -> list[Obj]:
    """The policy for all new pods of a namespace, with a binding that notes violations in the audit log."""
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": _NEW_PODS,
        "validations": [
            {
                "expression": "object.spec.containers.all(c, c.image.contains('@sha256:'))",
                "message": "images must be pinned by digest",
            }
        ],
    }
    binding = {"policyName": POLICY, "validationActions": ["Audit"], "matchResources": _only(namespace)}
    return _policy_and_binding(POLICY, policy, binding)


def _only(namespace: str) -> Obj:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}


def _policy_and_binding(name: str, policy: Obj, binding: Obj) -> list[Obj]:
    return [
        {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in (("ValidatingAdmissionPolicy", policy), (_BINDING, binding))
    ]
