"""The admission plug-ins of a cluster, in the order of a v1.34 server with its default set."""

from __future__ import annotations

from srearena.cluster.embedded.registry.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from srearena.cluster.embedded.registry.admission.custom_resources import CustomResourceLifecycle
from srearena.cluster.embedded.registry.admission.limits import LimitRanger
from srearena.cluster.embedded.registry.admission.namespaces import NamespaceLifecycle
from srearena.cluster.embedded.registry.admission.pod_defaults import (
    DefaultTolerationSeconds,
    Priority,
    RuntimeClass,
    TaintNodesByCondition,
)
from srearena.cluster.embedded.registry.admission.pod_security import PodSecurity
from srearena.cluster.embedded.registry.admission.policies import ValidatingPolicies
from srearena.cluster.embedded.registry.admission.quota import ResourceQuota
from srearena.cluster.embedded.registry.admission.service_accounts import ServiceAccount
from srearena.cluster.embedded.registry.admission.storage import ClaimResize, DefaultIngressClass, DefaultStorageClass
from srearena.cluster.embedded.registry.admission.webhooks import Webhooks
from srearena.cluster.embedded.registry.registry import Registry


def install(registry: Registry) -> Webhooks:
    """Fill the registry's chain; returns the webhook plug-in, whose caller and authorizer are set later."""
    store = registry.store
    webhooks = Webhooks(store, registry.clock, registry.randomness, registry.component_logs)
    registry.admission.plugins = [
        CustomResourceLifecycle(store),
        NamespaceLifecycle(store),
        LimitRanger(store),
        ServiceAccount(store, registry.randomness),
        TaintNodesByCondition(),
        PodSecurity(store),
        Priority(store),
        DefaultTolerationSeconds(),
        DefaultStorageClass(store),
        ClaimResize(store),
        RuntimeClass(store),
        CertificateApproval(webhooks.conditions),
        CertificateSigning(webhooks.conditions),
        CertificateSubjectRestriction(),
        DefaultIngressClass(store),
        ValidatingPolicies(store, registry.resources, webhooks.conditions),
        webhooks,
        ResourceQuota(store),
    ]
    return webhooks
