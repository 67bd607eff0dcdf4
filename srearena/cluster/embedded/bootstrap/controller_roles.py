"""RBAC rules of the controllers of kube-controller-manager, by service account.

A controller's ClusterRole and its binding are called `system:controller:` and the name here.
"""

from __future__ import annotations

from srearena.cluster.embedded.bootstrap.rules import EVENTS, READ, rule
from srearena.cluster.embedded.objects import Obj

CONTROLLER_RULES: dict[str, list[Obj]] = {
    "attachdetach-controller": [
        rule("core", "persistentvolumeclaims persistentvolumes", "list watch"),
        rule("core", "nodes", READ),
        rule("core", "nodes/status", "patch update"),
        rule("core", "pods", "list watch"),
        EVENTS,
        rule("storage.k8s.io", "volumeattachments", "create delete get list watch"),
        rule("storage.k8s.io", "csidrivers", READ),
        rule("storage.k8s.io", "csinodes", READ),
    ],
    "clusterrole-aggregation-controller": [
        rule("rbac.authorization.k8s.io", "clusterroles", "escalate get list patch update watch")
    ],
    "cronjob-controller": [
        rule("batch", "cronjobs", "get list update watch"),
        rule("batch", "jobs", "create delete get list patch update watch"),
        rule("batch", "cronjobs/status", "update"),
        rule("batch", "cronjobs/finalizers", "update"),
        rule("core", "pods", "delete list watch"),
        EVENTS,
    ],
    "daemon-set-controller": [
        rule("apps extensions", "daemonsets", READ),
        rule("apps extensions", "daemonsets/status", "update"),
        rule("apps extensions", "daemonsets/finalizers", "update"),
        rule("core", "nodes", "list watch"),
        rule("core", "pods", "create delete list patch watch"),
        rule("core", "pods/binding", "create"),
        rule("apps", "controllerrevisions", "create delete get list patch update watch"),
        EVENTS,
    ],
    "deployment-controller": [
        rule("apps extensions", "deployments", "get list update watch"),
        rule("apps extensions", "deployments/status", "update"),
        rule("apps extensions", "deployments/finalizers", "update"),
        rule("apps extensions", "replicasets", "create delete get list patch update watch"),
        rule("core", "pods", "get list update watch"),
        EVENTS,
    ],
    "disruption-controller": [
        rule("apps extensions", "deployments", READ),
        rule("apps extensions", "replicasets", READ),
        rule("core", "replicationcontrollers", READ),
        rule("policy", "poddisruptionbudgets", READ),
        rule("apps", "statefulsets", READ),
        rule("policy", "poddisruptionbudgets/status", "update"),
        rule("core", "pods/status", "patch update"),
        rule("*", "*/scale", "get"),
        EVENTS,
    ],
    "endpoint-controller": [
        rule("core", "pods services", READ),
        rule("core", "endpoints", "create delete get list update watch"),
        rule("core", "endpoints/restricted", "create"),
        EVENTS,
    ],
    "endpointslice-controller": [
        rule("core", "nodes pods services", READ),
        rule("core", "services/finalizers", "update"),
        rule("discovery.k8s.io", "endpointslices", "create delete get list update watch"),
        EVENTS,
    ],
    "endpointslicemirroring-controller": [
        rule("core", "endpoints services", READ),
        rule("core", "services/finalizers", "update"),
        rule("core", "endpoints/finalizers", "update"),
        rule("discovery.k8s.io", "endpointslices", "create delete get list update watch"),
        EVENTS,
    ],
    "expand-controller": [
        rule("core", "persistentvolumes", "get list patch update watch"),
        rule("core", "persistentvolumeclaims/status", "patch update"),
        rule("core", "persistentvolumeclaims", READ),
        EVENTS,
        rule("core", "services", "get"),
    ],
    "ephemeral-volume-controller": [
        rule("core", "pods", READ),
        rule("core", "pods/finalizers", "update"),
        rule("core", "persistentvolumeclaims", "create get list watch"),
        EVENTS,
    ],
    "resource-claim-controller": [
        rule("core", "pods", READ),
        rule("core", "pods/finalizers", "update"),
        rule("resource.k8s.io", "resourceclaims", "create delete get list watch"),
        rule("resource.k8s.io", "resourceclaims resourceclaims/status", "patch update"),
        rule("core", "pods/status", "patch update"),
        EVENTS,
    ],
    "generic-garbage-collector": [
        rule("*", "*", "delete get list patch update watch"),
        EVENTS,
    ],
    "horizontal-pod-autoscaler": [
        rule("autoscaling", "horizontalpodautoscalers", READ),
        rule("autoscaling", "horizontalpodautoscalers/status", "update"),
        rule("*", "*/scale", "get update"),
        rule("core", "pods", "list watch"),
        rule("metrics.k8s.io", "pods", "list watch"),
        rule("custom.metrics.k8s.io", "*", READ),
        rule("external.metrics.k8s.io", "*", READ),
        EVENTS,
    ],
    "job-controller": [
        rule("batch", "jobs", "get list patch update watch"),
        rule("batch", "jobs/status", "update"),
        rule("batch", "jobs/finalizers", "update"),
        rule("core", "pods", "create delete list patch watch"),
        EVENTS,
    ],
    "namespace-controller": [
        rule("core", "namespaces", "delete get list watch"),
        rule("core", "namespaces/finalize namespaces/status", "update"),
        rule("*", "*", "delete deletecollection get list watch"),
    ],
    "node-controller": [
        rule("core", "nodes", "delete get list patch update watch"),
        rule("core", "nodes/status", "patch update"),
        rule("core", "pods/status", "patch update"),
        rule("core", "pods", "delete get list watch"),
        EVENTS,
    ],
    "persistent-volume-binder": [
        rule("core", "persistentvolumes", "create delete get list update watch"),
        rule("core", "persistentvolumes/status", "update"),
        rule("core", "persistentvolumeclaims", "get list update watch"),
        rule("core", "persistentvolumeclaims/status", "update"),
        rule("core", "pods", "create delete get list watch"),
        rule("storage.k8s.io", "storageclasses", READ),
        rule("core", "nodes", "list watch"),
        EVENTS,
        rule("core", "events", "watch"),
        rule("core", "services", "get"),
    ],
    "pod-garbage-collector": [
        rule("core", "pods", "delete list watch"),
        rule("core", "nodes", READ),
        rule("core", "pods/status", "patch"),
    ],
    "replicaset-controller": [
        rule("apps extensions", "replicasets", "get list update watch"),
        rule("apps extensions", "replicasets/status", "update"),
        rule("apps extensions", "replicasets/finalizers", "update"),
        rule("core", "pods", "create delete list patch watch"),
        EVENTS,
    ],
    "replication-controller": [
        rule("core", "replicationcontrollers", "get list update watch"),
        rule("core", "replicationcontrollers/status", "update"),
        rule("core", "replicationcontrollers/finalizers", "update"),
        rule("core", "pods", "create delete list patch watch"),
        EVENTS,
    ],
    "resourcequota-controller": [
        rule("*", "*", "list watch"),
        rule("core", "resourcequotas/status", "update"),
        EVENTS,
    ],
    "route-controller": [
        rule("core", "nodes", "list watch"),
        rule("core", "nodes/status", "patch"),
        EVENTS,
    ],
    "service-account-controller": [
        rule("core", "serviceaccounts", "create"),
        EVENTS,
    ],
    "service-controller": [
        rule("core", "services", READ),
        rule("core", "services/status", "patch update"),
        rule("core", "nodes", "list watch"),
        EVENTS,
    ],
    "service-cidrs-controller": [
        rule("networking.k8s.io", "servicecidrs", "get list patch update watch"),
        rule("networking.k8s.io", "servicecidrs/finalizers", "patch update"),
        rule("networking.k8s.io", "servicecidrs/status", "patch update"),
        rule("networking.k8s.io", "ipaddresses", READ),
        EVENTS,
    ],
    "statefulset-controller": [
        rule("core", "pods", "list watch"),
        rule("apps", "statefulsets", READ),
        rule("apps", "statefulsets/status", "update"),
        rule("apps", "statefulsets/finalizers", "update"),
        rule("core", "pods", "create delete get patch update"),
        rule("apps", "controllerrevisions", "create delete get list patch update watch"),
        rule("core", "persistentvolumeclaims", "create get list watch"),
        EVENTS,
        rule("core", "persistentvolumeclaims", "delete update"),
        rule("core", "pods/finalizers", "update"),
    ],
    "ttl-controller": [
        rule("core", "nodes", "list patch update watch"),
        EVENTS,
    ],
    "certificate-controller": [
        rule("certificates.k8s.io", "certificatesigningrequests", "delete get list watch"),
        rule("certificates.k8s.io", "certificatesigningrequests/approval certificatesigningrequests/status", "update"),
        rule("certificates.k8s.io", "signers", "approve", names="kubernetes.io/kube-apiserver-client-kubelet"),
        rule(
            "certificates.k8s.io",
            "signers",
            "sign",
            names="kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet "
            "kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown",
        ),
        rule("authorization.k8s.io", "subjectaccessreviews", "create"),
        EVENTS,
    ],
    "pvc-protection-controller": [
        rule("core", "persistentvolumeclaims", "get list update watch"),
        rule("core", "pods", READ),
        EVENTS,
    ],
    "pv-protection-controller": [
        rule("core", "persistentvolumes", "get list update watch"),
        EVENTS,
    ],
    "volumeattributesclass-protection-controller": [
        rule("core", "persistentvolumeclaims", READ),
        rule("core", "persistentvolumes", READ),
        rule("storage.k8s.io", "volumeattributesclasses", "get list update watch"),
        EVENTS,
    ],
    "ttl-after-finished-controller": [
        rule("batch", "jobs", "delete get list watch"),
        EVENTS,
    ],
    "root-ca-cert-publisher": [
        rule("core", "configmaps", "create update"),
        EVENTS,
    ],
    "validatingadmissionpolicy-status-controller": [
        rule("admissionregistration.k8s.io", "validatingadmissionpolicies", READ),
        rule("admissionregistration.k8s.io", "validatingadmissionpolicies/status", "get patch update"),
        EVENTS,
    ],
    "legacy-service-account-token-cleaner": [
        rule("core", "configmaps", "get", names="kube-apiserver-legacy-service-account-token-tracking"),
        rule("core", "secrets", "delete patch"),
    ],
    "selinux-warning-controller": [
        EVENTS,
        rule("core", "persistentvolumes", READ),
        rule("core", "persistentvolumeclaims", READ),
        rule("core", "pods", READ),
        rule("storage.k8s.io", "csidrivers", READ),
    ],
}

_CLOUD_OR_DISABLED = frozenset(("route-controller", "selinux-warning-controller", "service-controller"))
RUNNING_CONTROLLERS = sorted(
    {"bootstrap-signer", "token-cleaner", *CONTROLLER_RULES} - _CLOUD_OR_DISABLED,
)
"""Those that run in a cluster without a cloud; all but two have a role of their own for the whole cluster."""
