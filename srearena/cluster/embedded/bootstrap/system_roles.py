"""The rules of the default ClusterRoles for users and for system components."""

from __future__ import annotations

from srearena.cluster.embedded.bootstrap.rules import EVENTS, EVERY_VERB, READ, WRITE, paths, rule
from srearena.cluster.embedded.objects import Obj

SYSTEM_RULES: dict[str, list[Obj]] = {
    "cluster-admin": [
        rule("*", "*", "*"),
        paths("*", "*"),
    ],
    "system:discovery": [
        paths("/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/")
    ],
    "system:monitoring": [
        paths("/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),
        rule("core", "nodes/metrics", "get"),
    ],
    "system:basic-user": [
        rule("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
        rule("authentication.k8s.io", "selfsubjectreviews", "create"),
    ],
    "system:public-info-viewer": [paths("/healthz /livez /readyz /version /version/")],
    "system:aggregate-to-admin": [
        rule("authorization.k8s.io", "localsubjectaccessreviews", "create"),
        rule("rbac.authorization.k8s.io", "rolebindings roles", EVERY_VERB),
    ],
    "system:aggregate-to-edit": [
        rule("core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", READ),
        rule("core", "serviceaccounts", "impersonate"),
        rule("core", "pods pods/attach pods/exec pods/portforward pods/proxy", WRITE),
        rule("core", "pods/eviction", "create"),
        rule(
            "core",
            "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
            "serviceaccounts services services/proxy",
            WRITE,
        ),
        rule("core", "serviceaccounts/token", "create"),
        rule(
            "apps",
            "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale "
            "statefulsets statefulsets/scale",
            WRITE,
        ),
        rule("autoscaling", "horizontalpodautoscalers", WRITE),
        rule("batch", "cronjobs jobs", WRITE),
        rule(
            "extensions",
            "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets "
            "replicasets/scale replicationcontrollers/scale",
            WRITE,
        ),
        rule("policy", "poddisruptionbudgets", WRITE),
        rule("networking.k8s.io", "ingresses networkpolicies", WRITE),
        rule("coordination.k8s.io", "leases", EVERY_VERB),
        rule("resource.k8s.io", "resourceclaims resourceclaimtemplates", WRITE),
    ],
    "system:aggregate-to-view": [
        rule(
            "core",
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
            "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
            READ,
        ),
        rule(
            "core",
            "bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status "
            "resourcequotas resourcequotas/status",
            READ,
        ),
        rule("core", "namespaces", READ),
        rule("discovery.k8s.io", "endpointslices", READ),
        rule(
            "apps",
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status "
            "replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
            READ,
        ),
        rule("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", READ),
        rule("batch", "cronjobs cronjobs/status jobs jobs/status", READ),
        rule(
            "extensions",
            "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses "
            "ingresses/status networkpolicies replicasets replicasets/scale replicasets/status "
            "replicationcontrollers/scale",
            READ,
        ),
        rule("policy", "poddisruptionbudgets poddisruptionbudgets/status", READ),
        rule("networking.k8s.io", "ingresses ingresses/status networkpolicies", READ),
        rule("resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates", READ),
    ],
    "system:heapster": [
        rule("core", "events namespaces nodes pods", READ),
        rule("extensions", "deployments", READ),
    ],
    "system:node": [
        rule("authentication.k8s.io", "tokenreviews", "create"),
        rule("authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews", "create"),
        rule("core", "services", READ),
        rule("core", "nodes", "create get list watch"),
        rule("core", "nodes/status", "patch update"),
        rule("core", "nodes", "patch update"),
        rule("core", "events", "create patch update"),
        rule("core", "pods", READ),
        rule("core", "pods", "create delete"),
        rule("core", "pods/status", "patch update"),
        rule("core", "pods/eviction", "create"),
        rule("core", "configmaps secrets", READ),
        rule("core", "persistentvolumeclaims persistentvolumes", "get"),
        rule("core", "endpoints", "get"),
        rule("certificates.k8s.io", "certificatesigningrequests", "create get list watch"),
        rule("coordination.k8s.io", "leases", "create delete get patch update"),
        rule("storage.k8s.io", "volumeattachments", "get"),
        rule("core", "serviceaccounts/token", "create"),
        rule("core", "persistentvolumeclaims/status", "get patch update"),
        rule("storage.k8s.io", "csidrivers", READ),
        rule("storage.k8s.io", "csinodes", "create delete get patch update"),
        rule("node.k8s.io", "runtimeclasses", READ),
        rule("resource.k8s.io", "resourceclaims", "get"),
        rule("resource.k8s.io", "resourceslices", "deletecollection"),
        rule("core", "serviceaccounts", "get"),
    ],
    "system:node-problem-detector": [
        rule("core", "nodes", "get"),
        rule("core", "nodes/status", "patch"),
        EVENTS,
    ],
    "system:node-bootstrapper": [rule("certificates.k8s.io", "certificatesigningrequests", "create get list watch")],
    "system:auth-delegator": [
        rule("authentication.k8s.io", "tokenreviews", "create"),
        rule("authorization.k8s.io", "subjectaccessreviews", "create"),
    ],
    "system:kube-aggregator": [rule("core", "endpoints services", READ)],
    "system:kube-controller-manager": [
        EVENTS,
        rule("coordination.k8s.io", "leases", "create"),
        rule("coordination.k8s.io", "leases", "get update", names="kube-controller-manager"),
        rule("core", "secrets serviceaccounts", "create"),
        rule("core", "secrets", "delete"),
        rule("core", "configmaps namespaces secrets serviceaccounts", "get"),
        rule("core", "secrets serviceaccounts", "update"),
        rule("authentication.k8s.io", "tokenreviews", "create"),
        rule("authorization.k8s.io", "subjectaccessreviews", "create"),
        rule("*", "*", "list watch"),
        rule("core", "serviceaccounts/token", "create"),
    ],
    "system:kube-dns": [rule("core", "endpoints services", "list watch")],
    "system:persistent-volume-provisioner": [
        rule("core", "persistentvolumes", "create delete get list watch"),
        rule("core", "persistentvolumeclaims", "get list update watch"),
        rule("storage.k8s.io", "storageclasses", READ),
        rule("core", "events", "watch"),
        EVENTS,
    ],
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": [
        rule("certificates.k8s.io", "certificatesigningrequests/nodeclient", "create")
    ],
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": [
        rule("certificates.k8s.io", "certificatesigningrequests/selfnodeclient", "create")
    ],
    "system:volume-scheduler": [
        rule("core", "persistentvolumes", "get list patch update watch"),
        rule("storage.k8s.io", "storageclasses", READ),
        rule("core", "persistentvolumeclaims", "get list patch update watch"),
    ],
    "system:certificates.k8s.io:legacy-unknown-approver": [
        rule("certificates.k8s.io", "signers", "approve", names="kubernetes.io/legacy-unknown")
    ],
    "system:certificates.k8s.io:kubelet-serving-approver": [
        rule("certificates.k8s.io", "signers", "approve", names="kubernetes.io/kubelet-serving")
    ],
    "system:certificates.k8s.io:kube-apiserver-client-approver": [
        rule("certificates.k8s.io", "signers", "approve", names="kubernetes.io/kube-apiserver-client")
    ],
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": [
        rule("certificates.k8s.io", "signers", "approve", names="kubernetes.io/kube-apiserver-client-kubelet")
    ],
    "system:service-account-issuer-discovery": [
        paths("/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/")
    ],
    "system:kubelet-api-admin": [
        rule("core", "nodes", READ),
        rule("core", "nodes", "proxy"),
        rule("core", "nodes/log nodes/metrics nodes/proxy nodes/stats", "*"),
        rule("core", "nodes/configz nodes/healthz nodes/pods", "*"),
    ],
    "system:node-proxier": [
        rule("core", "endpoints services", "list watch"),
        rule("core", "nodes", READ),
        EVENTS,
        rule("networking.k8s.io", "servicecidrs", "list watch"),
        rule("discovery.k8s.io", "endpointslices", "list watch"),
    ],
    "system:kube-scheduler": [
        EVENTS,
        rule("coordination.k8s.io", "leases", "create"),
        rule("coordination.k8s.io", "leases", "get list update watch", names="kube-scheduler"),
        rule("coordination.k8s.io", "leasecandidates", EVERY_VERB),
        rule("core", "nodes", READ),
        rule("core", "pods", "delete get list watch"),
        rule("core", "bindings pods/binding", "create"),
        rule("core", "pods/status", "patch update"),
        rule("core", "replicationcontrollers services", READ),
        rule("apps extensions", "replicasets", READ),
        rule("apps", "statefulsets", READ),
        rule("policy", "poddisruptionbudgets", READ),
        rule("core", "persistentvolumeclaims persistentvolumes", READ),
        rule("authentication.k8s.io", "tokenreviews", "create"),
        rule("authorization.k8s.io", "subjectaccessreviews", "create"),
        rule("storage.k8s.io", "csinodes", READ),
        rule("storage.k8s.io", "volumeattachments", READ),
        rule("core", "namespaces", READ),
        rule("storage.k8s.io", "csidrivers", READ),
        rule("storage.k8s.io", "csistoragecapacities", READ),
        rule("resource.k8s.io", "deviceclasses", READ),
        rule("resource.k8s.io", "resourceclaims", "get list patch update watch"),
        rule("resource.k8s.io", "resourceclaims/status", "get list patch update watch"),
        rule("core", "pods/finalizers", "update"),
        rule("resource.k8s.io", "resourceslices", READ),
    ],
}

NAMESPACED_RULES: dict[tuple[str, str], list[Obj]] = {
    ("kube-public", "system:controller:bootstrap-signer"): [
        rule("core", "configmaps", READ),
        rule("core", "configmaps", "update", names="cluster-info"),
        EVENTS,
    ],
    ("kube-system", "extension-apiserver-authentication-reader"): [
        rule("core", "configmaps", READ, names="extension-apiserver-authentication")
    ],
    ("kube-system", "system:controller:bootstrap-signer"): [rule("core", "secrets", READ)],
    ("kube-system", "system:controller:cloud-provider"): [rule("core", "configmaps", "create get list watch")],
    ("kube-system", "system:controller:token-cleaner"): [
        rule("core", "secrets", "delete get list watch"),
        EVENTS,
    ],
    ("kube-system", "system::leader-locking-kube-controller-manager"): [
        rule("core", "configmaps", "watch"),
        rule("core", "configmaps", "get update", names="kube-controller-manager"),
        rule("coordination.k8s.io", "leases", "create get list update watch"),
        rule("coordination.k8s.io", "leasecandidates", "create get list update watch"),
    ],
    ("kube-system", "system::leader-locking-kube-scheduler"): [
        rule("core", "configmaps", "watch"),
        rule("core", "configmaps", "get update", names="kube-scheduler"),
        rule("coordination.k8s.io", "leases", "create get list update watch"),
        rule("coordination.k8s.io", "leasecandidates", "create get list update watch"),
    ],
}
"""By namespace and name of the Role."""
