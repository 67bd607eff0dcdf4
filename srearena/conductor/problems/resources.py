"""Memory requests and limits that do not fit, and quotas that admit no new pod."""

from __future__ import annotations

from srearena.conductor.problems.injected import UNDO, InjectedProblem
from srearena.conductor.problems.registry import problem


@problem("resource_request_too_large", app="hotel_reservation", service="mongodb-rate", memory_request="1000Gi")
class ResourceRequestTooLarge(InjectedProblem):
    family = "resource_request"
    difficulty = "easy"
    fault = "resource_request"
    explanation = "{service} requests {memory_request} of memory, more than any node has."
    remedy = UNDO


@problem("resource_request_too_small", app="hotel_reservation", service="mongodb-rate", memory_limit="10Mi")
class ResourceRequestTooSmall(InjectedProblem):
    family = "resource_request"
    fault = "resource_request"
    explanation = "{service} may use {memory_limit} of memory, less than it needs to start, and is killed."
    remedy = UNDO


@problem("namespace_memory_limit", app="hotel_reservation", service="search")
class NamespaceMemoryLimit(InjectedProblem):
    family = "namespace_memory_limit"
    fault = "namespace_memory_limit"
    explanation = "A quota on memory admits only pods that say how much they need, and those of {service} do not."
    remedy = """\
kubectl -n {ns} delete resourcequota memory-limit-quota
kubectl -n {ns} rollout restart deployment/{service}"""


@problem("psa_restricted_blocks_recreation_hotel_reservation", app="hotel_reservation", service="recommendation")
class PodSecurityRestricted(InjectedProblem):
    family = "pod_security"
    fault = "pod_security_restricted"
    explanation = "The namespace enforces the restricted pod security level, which pods of {service} do not meet."
    remedy = """\
kubectl label namespace {ns} pod-security.kubernetes.io/enforce-
kubectl -n {ns} rollout restart deployment/{service}"""
