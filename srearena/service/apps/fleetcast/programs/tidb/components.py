"""The objects that a TidbCluster asks for: pure functions from the cluster to Services, ConfigMaps and StatefulSets.

Values of the cluster's spec are handed on as they are. Whether a toleration, a user id or an update strategy makes
sense is for the API server to say when the StatefulSet is applied.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from srearena.cluster.program_models.kubernetes import Obj, dig, name_of
from srearena.service.apps.fleetcast.programs.tidb import scripts
from srearena.service.apps.fleetcast.programs.tidb.naming import image_of, labels, member_name, metadata

COMPONENTS = ("pd", "tikv", "tidb")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
HELPER_IMAGE = "busybox:1.26.2"
SLOW_LOG = "/var/log/tidb/slowlog"
_SCRIPTS = {"pd": scripts.PD, "tikv": scripts.TIKV, "tidb": scripts.TIDB}
_STATUS_PORTS = {"pd": 2379, "tikv": 20180, "tidb": 10080}
_PORTS = {
    "pd": (("server", 2380), ("client", 2379)),
    "tikv": (("server", 20160),),
    "tidb": (("server", 4000), ("status", 10080)),
}
_PEER_PORTS = {"pd": (("tcp-peer-2380", 2380), ("tcp-peer-2379", 2379)), "tikv": (("peer", 20160),)}
_POD_FIELDS = {
    "affinity": "affinity",
    "nodeSelector": "nodeSelector",
    "tolerations": "tolerations",
    "podSecurityContext": "securityContext",
    "priorityClassName": "priorityClassName",
    "schedulerName": "schedulerName",
    "hostNetwork": "hostNetwork",
    "terminationGracePeriodSeconds": "terminationGracePeriodSeconds",
    "imagePullSecrets": "imagePullSecrets",
    "initContainers": "initContainers",
}
"""Fields of a component's spec that go into the pod as they are; those of the cluster's spec stand in for them."""


def services(cluster: Obj, component: str) -> list[Obj]:
    peer_ports = _PEER_PORTS.get(component, (("status", 10080),))
    peer = _service(cluster, component, f"{member_name(cluster, component)}-peer", peer_ports, "peer")
    peer["spec"] |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    if component == "pd":
        front = _service(cluster, "pd", member_name(cluster, "pd"), (("client", 2379),), "end-user")
        front["spec"]["type"] = dig(cluster, "spec", "pd", "service", "type", default="ClusterIP")
        return [front, peer]
    wish = dig(cluster, "spec", "tidb", "service") if component == "tidb" else None
    if wish is None:
        return [peer]
    ports = [(str(wish.get("portName") or "mysql-client"), 4000)]
    if wish.get("exposeStatus", True):
        ports.append(("status", 10080))
    front = _service(cluster, "tidb", member_name(cluster, "tidb"), ports, "end-user")
    front["spec"]["type"] = wish.get("type") or "ClusterIP"
    front["metadata"]["annotations"] = dict(wish.get("annotations") or {})
    return [peer, front]


def _service(cluster: Obj, component: str, name: str, ports: Any, used_by: str) -> Obj:
    rows = [{"name": port_name, "port": port, "targetPort": port, "protocol": "TCP"} for port_name, port in ports]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(cluster, name, component, used_by),
        "spec": {"ports": rows, "selector": labels(cluster, component)},
    }


def config_map(cluster: Obj, component: str) -> Obj:
    data = {
        "config-file": toml(cluster["spec"][component].get("config") or {}),
        "startup-script": _SCRIPTS[component],
    }
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:7]
    name = f"{member_name(cluster, component)}-{digest}"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(cluster, name, component), "data": data}


def toml(config: Any, place: str = "") -> str:
    """A configuration as the CR gives it: TOML already, or a mapping of it."""
    if isinstance(config, str):
        return config
    plain, tables = [], []
    for name, value in config.items():
        key = name if _BARE.fullmatch(name) else json.dumps(name)
        if isinstance(value, Mapping):
            path = f"{place}.{key}" if place else key
            tables.append(f"\n[{path}]\n{toml(value, path)}")
        else:
            plain.append(f"{key} = {json.dumps(value)}\n")
    return "".join((*plain, *tables))


def stateful_set(cluster: Obj, component: str, config_map_name: str) -> Obj:
    spec = cluster["spec"][component]
    name = member_name(cluster, component)
    replicas = spec.get("replicas", 1)
    strategy = spec.get("statefulSetUpdateStrategy") or dig(cluster, "spec", "statefulSetUpdateStrategy")
    annotations = {
        "prometheus.io/path": "/metrics",
        "prometheus.io/port": str(_STATUS_PORTS[component]),
        "prometheus.io/scrape": "true",
        **(dig(cluster, "spec", "annotations", default={})),
        **(spec.get("annotations") or {}),
    }
    update: Obj = {"type": strategy or "RollingUpdate"}
    if update["type"] == "RollingUpdate":
        update["rollingUpdate"] = {"partition": replicas}
    found: Obj = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(cluster, name, component),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels(cluster, component)},
            "serviceName": f"{name}-peer",
            "podManagementPolicy": spec.get("podManagementPolicy") or "Parallel",
            "updateStrategy": update,
            "template": {
                "metadata": {
                    "labels": {**labels(cluster, component), **(spec.get("labels") or {})},
                    "annotations": annotations,
                },
                "spec": _pod(cluster, component, config_map_name),
            },
        },
    }
    if component != "tidb":
        found["spec"]["volumeClaimTemplates"] = [_claim(spec, component)]
    return found


def _claim(spec: Obj, component: str) -> Obj:
    body: Obj = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": dig(spec, "requests", "storage", default="1Gi")}},
    }
    if spec.get("storageClassName"):
        body["storageClassName"] = spec["storageClassName"]
    return {"metadata": {"name": component}, "spec": body}


def _pod(cluster: Obj, component: str, config_map_name: str) -> Obj:
    spec, everywhere = cluster["spec"][component], cluster["spec"]
    volumes: list[Obj] = [
        {
            "name": "annotations",
            "downwardAPI": {"items": [{"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}]},
        },
        {
            "name": "config",
            "configMap": {"name": config_map_name, "items": [{"key": "config-file", "path": f"{component}.toml"}]},
        },
        {
            "name": "startup-script",
            "configMap": {
                "name": config_map_name,
                "items": [{"key": "startup-script", "path": f"{component}_start_script.sh"}],
            },
        },
    ]
    containers = [_container(cluster, component)]
    if component == "tidb":
        volumes.append({"name": "slowlog", "emptyDir": {}})
        containers.insert(0, _slow_log(cluster))
    pod: Obj = {
        "containers": [*containers, *(spec.get("additionalContainers") or ())],
        "volumes": [*volumes, *(spec.get("additionalVolumes") or ())],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
    }
    for field, target in _POD_FIELDS.items():
        value = spec.get(field, everywhere.get(field))
        if value is not None:
            pod[target] = value
    return pod


def _container(cluster: Obj, component: str) -> Obj:
    spec = cluster["spec"][component]
    mounts: list[Obj] = [
        {"name": "annotations", "mountPath": "/etc/podinfo", "readOnly": True},
        {"name": "config", "mountPath": f"/etc/{component}", "readOnly": True},
        {"name": "startup-script", "mountPath": "/usr/local/bin", "readOnly": True},
    ]
    if component == "tidb":
        mounts.append({"name": "slowlog", "mountPath": "/var/log/tidb"})
    else:
        mounts.append({"name": component, "mountPath": f"/var/lib/{component}"})
    found: Obj = {
        "name": component,
        "image": image_of(cluster, component),
        "imagePullPolicy": spec.get("imagePullPolicy") or cluster["spec"].get("imagePullPolicy") or "IfNotPresent",
        "command": ["/bin/sh", f"/usr/local/bin/{component}_start_script.sh"],
        "env": [*_environment(cluster, component), *(spec.get("env") or ())],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in _PORTS[component]],
        "resources": _resources(spec),
        "volumeMounts": [*mounts, *(spec.get("additionalVolumeMounts") or ())],
    }
    if component == "tidb":
        found["readinessProbe"] = {"tcpSocket": {"port": 4000}, "initialDelaySeconds": 10}
    return found


def _resources(spec: Obj) -> Obj:
    kept = {
        field: {name: amount for name, amount in (spec.get(field) or {}).items() if name != "storage"}
        for field in ("requests", "limits")
    }
    return {field: amounts for field, amounts in kept.items() if amounts}


def _environment(cluster: Obj, component: str) -> list[Obj]:
    namespace = {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    pod_name = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    name = member_name(cluster, component)
    zone = _variable("TZ", dig(cluster, "spec", "timezone", default="UTC"))
    if component == "pd":
        return [
            namespace,
            _variable("PEER_SERVICE_NAME", f"{name}-peer"),
            _variable("SERVICE_NAME", name),
            _variable("SET_NAME", name),
            zone,
        ]
    common = [
        namespace,
        _variable("CLUSTER_NAME", name_of(cluster)),
        _variable("HEADLESS_SERVICE_NAME", f"{name}-peer"),
    ]
    if component == "tikv":
        capacity = dig(cluster, "spec", "tikv", "limits", "storage", default="0")
        return [*common, _variable("CAPACITY", str(capacity)), zone]
    return [
        *common,
        zone,
        _variable("BINLOG_ENABLED", "false"),
        _variable("SLOW_LOG_FILE", SLOW_LOG),
        pod_name,
    ]


def _variable(name: str, value: str) -> Obj:
    return {"name": name, "value": value}


def _slow_log(cluster: Obj) -> Obj:
    return {
        "name": "slowlog",
        "image": dig(cluster, "spec", "helper", "image") or HELPER_IMAGE,
        "imagePullPolicy": dig(cluster, "spec", "helper", "imagePullPolicy", default="IfNotPresent"),
        "command": ["sh", "-c", f"touch {SLOW_LOG}; tail -n0 -F {SLOW_LOG};"],
        "resources": {},
        "volumeMounts": [{"name": "slowlog", "mountPath": "/var/log/tidb"}],
    }


def discovery(cluster: Obj, image: str) -> list[Obj]:
    """The small service that tells PD members how to find each other, with the identity it needs."""
    name = member_name(cluster, "discovery")
    found = metadata(cluster, name, "discovery")
    ports = [("discovery", 10261), ("proxy", 10262)]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": found,
        "rules": [
            {
                "apiGroups": ["pingcap.com"],
                "resources": ["tidbclusters"],
                "resourceNames": [name_of(cluster)],
                "verbs": ["get"],
            },
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]},
        ],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": found,
        "subjects": [{"kind": "ServiceAccount", "name": name}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
    }
    container = {
        "name": "discovery",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/local/bin/tidb-discovery"],
        "env": [
            {"name": "MY_POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            _variable("TZ", dig(cluster, "spec", "timezone", default="UTC")),
            _variable("TC_NAME", name_of(cluster)),
        ],
        "ports": [{"name": port, "containerPort": number, "protocol": "TCP"} for port, number in ports],
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": found,
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels(cluster, "discovery")},
            "template": {
                "metadata": {"labels": labels(cluster, "discovery")},
                "spec": {"serviceAccountName": name, "containers": [container]},
            },
        },
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": found}
    return [role, account, binding, deployment, _service(cluster, "discovery", name, ports, "")]
