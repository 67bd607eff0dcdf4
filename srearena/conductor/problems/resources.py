"""Memory requests and limits that do not fit, and quotas that admit no new pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from srearena.conductor.problems.injected import CONTAINER, RESTORE, InjectedProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import components, stores
from srearena.conductor.problems.variation import Choice


@problem("resource_request_too_large", app="hotel_reservation", service="mongodb-rate", memory_request="1000Gi")
class ResourceRequestTooLarge(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": stores, "memory_request": ("500Gi", "1000Gi", "2000Gi")}
    family = "resource_request"
    difficulty = "easy"
    fault = "resource_request"
    explanation = "{service} requests {memory_request} of memory, more than any node has."
    remedy = RESTORE
    restores = (f"{CONTAINER}/resources",)


@problem("resource_request_too_small", app="hotel_reservation", service="mongodb-rate", memory_limit="10Mi")
class ResourceRequestTooSmall(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": stores, "memory_limit": ("8Mi", "10Mi", "12Mi")}
    family = "resource_request"
    fault = "resource_request"
    explanation = "{service} may use {memory_limit} of memory, less than it needs to start, and is killed."
    remedy = RESTORE
    restores = (f"{CONTAINER}/resources",)


@problem("namespace_memory_limit", app="hotel_reservation", service="search")
class NamespaceMemoryLimit(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components}
    affects_new_pods = True
    family = "namespace_memory_limit"
    fault = "namespace_memory_limit"
    root_kind = "ResourceQuota"
    root_name = "memory-limit-quota"
    explanation = "A quota on memory admits only pods that say how much they need, and those of {service} do not."
    remedy = """\
kubectl -n {ns} delete resourcequota memory-limit-quota
kubectl -n {ns} rollout restart deployment/{service}"""


@problem("psa_restricted_blocks_recreation_hotel_reservation", app="hotel_reservation", service="recommendation")
class PodSecurityRestricted(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components}
    affects_new_pods = True
    family = "pod_security"
    fault = "pod_security_restricted"
    root_kind = "Namespace"
    root_name = "{ns}"
    explanation = "The namespace enforces the restricted pod security level, which pods of {service} do not meet."
    remedy = """\
kubectl label namespace {ns} pod-security.kubernetes.io/enforce-
kubectl -n {ns} rollout restart deployment/{service}"""
