"""Names, labels and owner references of the objects of a TidbCluster."""

from __future__ import annotations

from srearena.cluster.program_models.kubernetes import Obj, name_of, namespace_of, owner_reference

GROUP, VERSION, PLURAL = "pingcap.com", "v1alpha1", "tidbclusters"
CLUSTER_ID = "tidb.pingcap.com/cluster-id"
MEMBER_ID = "tidb.pingcap.com/member-id"
STORE_ID = "tidb.pingcap.com/store-id"
LAST_APPLIED = "pingcap.com/last-applied-configuration"


def labels(cluster: Obj, component: str, used_by: str = "") -> dict[str, str]:
    found = {
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/instance": name_of(cluster),
        "app.kubernetes.io/managed-by": "tidb-operator",
        "app.kubernetes.io/name": "tidb-cluster",
    }
    return {**found, "app.kubernetes.io/used-by": used_by} if used_by else found


def selector(cluster: Obj) -> str:
    return f"app.kubernetes.io/instance={name_of(cluster)},app.kubernetes.io/managed-by=tidb-operator"


def member_name(cluster: Obj, component: str) -> str:
    return f"{name_of(cluster)}-{component}"


def metadata(cluster: Obj, name: str, component: str, used_by: str = "") -> Obj:
    return {
        "name": name,
        "namespace": namespace_of(cluster),
        "labels": labels(cluster, component, used_by),
        "ownerReferences": [owner_reference(cluster)],
    }


def image_of(cluster: Obj, component: str) -> str:
    """`spec.<component>.image`, or base image and version, as the operator puts them together."""
    spec = cluster["spec"][component]
    if spec.get("image"):
        return str(spec["image"])
    base = spec.get("baseImage") or f"pingcap/{component}"
    return f"{base}:{spec.get('version') or cluster['spec'].get('version') or 'latest'}"
