"""Faults in the virtualization layer: misconfigured Kubernetes objects.

Most edit one object. Where a rolling update would keep old pods serving, the edit replaces all pods (see `Edit`).
"""

from __future__ import annotations

from typing import Any

from srearena.generators.fault.base import FaultInjector
from srearena.generators.fault.edits import Addition, CompositeFault, Edit, Removal, ReplacePods, as_new
from srearena.generators.fault.pod_templates import first_container, first_port, pod_spec, set_variable, workload_edit
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.steps import selector_of, workers
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

__all__ = ["VirtualizationFaultInjector"]


class VirtualizationFaultInjector(FaultInjector):
    """`VirtualizationFaultInjector(testbed="social-network").inject_fault(["user-service"], "misconfig")`."""


# Services


@fault("misconfig_k8s", "misconfig", "target_port")
def target_port(bed: Testbed, service: str, port: int = 9999) -> Fault:
    """A Service forwards to a port on which nothing listens."""

    def change(obj: Obj) -> None:
        for entry in obj["spec"]["ports"]:
            entry["targetPort"] = port

    return Edit(bed, "services", service, change)


@fault("missing_service")
def missing_service(bed: Testbed, service: str, client: str) -> Fault:
    """A Service is deleted, and a client that has its address restarts."""
    return CompositeFault(Removal(bed, "services", service), ReplacePods(bed, selector_of(bed, client)))


@fault("wrong_service_selector")
def wrong_service_selector(bed: Testbed, service: str, label: str = "current_service_name") -> Fault:
    """A Service selects a label that its pods do not have."""
    return Edit(bed, "services", service, lambda obj: obj["spec"]["selector"].update({label: service}))


@fault("service_wrong_pod_selection")
def service_wrong_pod_selection(bed: Testbed, service: str, other: str = "search") -> Fault:
    """A Service's selector also matches another workload's pods, which receive part of its requests."""
    label = {"tier": "web"}

    def add_label(obj: Obj) -> None:
        obj["spec"]["template"]["metadata"].setdefault("labels", {}).update(label)

    return CompositeFault(
        Edit(bed, "deployments", service, add_label),
        Edit(bed, "deployments", other, add_label),
        Edit(bed, "services", service, lambda obj: obj["spec"].update(selector=dict(label))),
    )


@fault("internal_traffic_policy_local")
def internal_traffic_policy_local(bed: Testbed, service: str) -> Fault:
    """A Service serves only clients on the nodes of its own pods."""
    return Edit(bed, "services", service, lambda obj: obj["spec"].update(internalTrafficPolicy="Local"))


# Scheduling


@fault("assign_to_non_existent_node")
def assign_to_non_existent_node(bed: Testbed, service: str, node: str = "extra-node") -> Fault:
    """A workload requests a node that does not exist."""
    return workload_edit(bed, service, lambda obj: pod_spec(obj).update(nodeSelector={"kubernetes.io/hostname": node}))


@fault("scale_pods_to_zero", "scale_pod_zero")
def scale_pods_to_zero(bed: Testbed, service: str) -> Fault:
    """A workload is scaled to zero."""
    return Edit(bed, "deployments", service, lambda obj: obj["spec"].update(replicas=0))


@fault("pod_anti_affinity_deadlock")
def pod_anti_affinity_deadlock(bed: Testbed, service: str) -> Fault:
    """More replicas than nodes, with an anti-affinity that requires one node each."""

    def change(obj: Obj) -> None:
        labels = obj["spec"]["selector"]["matchLabels"]
        rule = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": "kubernetes.io/hostname"}
        pod_spec(obj)["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
        obj["spec"]["replicas"] = len(bed.kubernetes.list("nodes")) + 1

    return workload_edit(bed, service, change)


@fault("taint_no_toleration")
def taint_no_toleration(bed: Testbed, service: str) -> Fault:
    """Every node is tainted, and the workload tolerates another taint."""
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}

    def tainted(obj: Obj) -> None:
        taints = obj["spec"].setdefault("taints", [])
        if taint not in taints:
            taints.append(dict(taint))

    def tolerate(obj: Obj) -> None:
        toleration = {"key": "dedicated", "operator": "Equal", "value": "interactive", "effect": "NoSchedule"}
        pod_spec(obj)["tolerations"] = [toleration]

    nodes = [Edit(bed, "nodes", node["metadata"]["name"], tainted) for node in bed.kubernetes.list("nodes")]
    return CompositeFault(*nodes, workload_edit(bed, service, tolerate))


@fault("persistent_volume_affinity_violation")
def persistent_volume_affinity_violation(bed: Testbed, service: str) -> Fault:
    """A workload's volume is on one node, and the workload requires another."""
    nodes = workers(bed)
    volume_node, pod_node = nodes[0], nodes[-1]
    volume, claim = f"{service}-data", f"{service}-data"
    affinity = {
        "required": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [volume_node]}]}
            ]
        }
    }
    volumes: Obj = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "manual",
            "local": {"path": "/mnt"},
            "nodeAffinity": affinity,
        },
    }
    claims: Obj = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": bed.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "manual",
            "volumeName": volume,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }

    def change(obj: Obj) -> None:
        spec = pod_spec(obj)
        spec["nodeSelector"] = {"kubernetes.io/hostname": pod_node}
        spec.setdefault("volumes", []).append({"name": "data", "persistentVolumeClaim": {"claimName": claim}})
        first_container(obj).setdefault("volumeMounts", []).append({"name": "data", "mountPath": "/data"})

    return CompositeFault(Addition(bed, volumes), Addition(bed, claims), workload_edit(bed, service, change))


# Containers


@fault("wrong_bin_usage")
def wrong_bin_usage(bed: Testbed, service: str, binary: str = "geo") -> Fault:
    """A container starts another service's program."""
    return workload_edit(bed, service, lambda obj: first_container(obj).update(command=[binary]))


@fault("incorrect_image")
def incorrect_image(bed: Testbed, service: str, image: str = "app-image:latest") -> Fault:
    """A container's image does not exist."""
    return workload_edit(bed, service, lambda obj: first_container(obj).update(image=image))


@fault("sidecar_port_conflict")
def sidecar_port_conflict(bed: Testbed, service: str) -> Fault:
    """A sidecar listens on the port of the main container."""

    def change(obj: Obj) -> None:
        port = first_port(obj)
        sidecar = {
            "name": "forwarder",
            "image": "busybox:1.36",
            "command": ["sh", "-c", f"nc -lk -p {port} -e cat"],
        }
        pod_spec(obj)["containers"].insert(0, sidecar)

    return workload_edit(bed, service, change)


@fault("service_port_conflict")
def service_port_conflict(bed: Testbed, service: str, port: int = 9100) -> Fault:
    """Pods use a host port, so that two of them do not fit on a node."""

    def change(obj: Obj) -> None:
        ports = first_container(obj).setdefault("ports", [])
        ports.append({"containerPort": port, "hostPort": port, "protocol": "TCP"})

    return workload_edit(bed, service, change)


@fault("shared_memory_removed")
def shared_memory_removed(bed: Testbed, service: str) -> Fault:
    """A workload's volume for shared memory is removed; the runtime's default is small."""

    def change(obj: Obj) -> None:
        mounts = first_container(obj)["volumeMounts"]
        removed = {mount["name"] for mount in mounts if mount["mountPath"] == "/dev/shm"}
        first_container(obj)["volumeMounts"] = [mount for mount in mounts if mount["name"] not in removed]
        spec = pod_spec(obj)
        spec["volumes"] = [volume for volume in spec["volumes"] if volume["name"] not in removed]

    return workload_edit(bed, service, change)


@fault("init_container_dependency_hang")
def init_container_dependency_hang(bed: Testbed, service: str, dependency: str = "legacy-config-service") -> Fault:
    """An init container waits for a Service that does not exist."""

    def change(obj: Obj) -> None:
        script = f"until nslookup {dependency}; do echo waiting for {dependency}; sleep 2; done"
        waiting = {"name": "wait-for-config", "image": "busybox:1.36", "command": ["sh", "-c", script]}
        pod_spec(obj).setdefault("initContainers", []).append(waiting)

    return workload_edit(bed, service, change)


@fault("env_variable_missing", "missing_env_variable")
def missing_env_variable(bed: Testbed, service: str, variable: str = "CART_ADDR") -> Fault:
    """A required environment variable is missing."""

    def change(obj: Obj) -> None:
        container = first_container(obj)
        container["env"] = [entry for entry in container.get("env", ()) if entry["name"] != variable]

    return workload_edit(bed, service, change)


@fault("env_variable_value", "incorrect_port_assignment")
def env_variable_value(bed: Testbed, service: str, variable: str, value: str) -> Fault:
    """An environment variable has a wrong value."""

    return workload_edit(bed, service, lambda obj: set_variable(obj, variable, value))


@fault("env_variable_shadowing")
def env_variable_shadowing(bed: Testbed, service: str, variable: str, value: str) -> Fault:
    """A variable is defined twice: the later, wrong definition takes effect."""

    def change(obj: Obj) -> None:
        first_container(obj).setdefault("env", []).append({"name": variable, "value": value})

    return workload_edit(bed, service, change)


# Probes


def _http_probe(path: str, **settings: Any) -> Obj:
    return {"httpGet": {"path": path, "port": 8080, "scheme": "HTTP"}, **settings}


@fault("liveness_probe_misconfiguration")
def liveness_probe_misconfiguration(bed: Testbed, service: str, path: str = "/healthz") -> Fault:
    """A liveness probe requests a port or path that the program does not serve, so it is restarted repeatedly."""

    def change(obj: Obj) -> None:
        pod_spec(obj)["terminationGracePeriodSeconds"] = 0
        first_container(obj)["livenessProbe"] = _http_probe(
            path, initialDelaySeconds=10, periodSeconds=10, failureThreshold=1
        )

    return workload_edit(bed, service, change)


@fault("readiness_probe_misconfiguration")
def readiness_probe_misconfiguration(bed: Testbed, service: str, path: str = "/healthz") -> Fault:
    """A readiness probe requests what the program does not serve, so it never becomes ready."""

    def change(obj: Obj) -> None:
        first_container(obj)["readinessProbe"] = _http_probe(
            path, initialDelaySeconds=10, periodSeconds=10, failureThreshold=1
        )

    return workload_edit(bed, service, change)


# Resources and admission


@fault("resource_request")
def resource_request(bed: Testbed, service: str, memory_request: str = "", memory_limit: str = "") -> Fault:
    """A container requests more memory than any node has, or its limit is below what it needs."""

    def change(obj: Obj) -> None:
        resources = first_container(obj).setdefault("resources", {})
        if memory_request:
            resources.setdefault("requests", {})["memory"] = memory_request
        if memory_limit:
            resources.setdefault("limits", {})["memory"] = memory_limit

    return workload_edit(bed, service, change)


@fault("namespace_memory_limit")
def namespace_memory_limit(bed: Testbed, service: str) -> Fault:
    """A memory quota in a namespace whose pods have no memory requests: no new pod is admitted."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "memory-limit-quota", "namespace": bed.namespace},
        "spec": {"hard": {"memory": "1Gi"}},
    }
    return CompositeFault(Addition(bed, quota), ReplacePods(bed, selector_of(bed, service)))


@fault("pod_security_restricted", "psa_restricted")
def pod_security_restricted(bed: Testbed, service: str) -> Fault:
    """The namespace begins to enforce a pod security level that its own pods do not meet."""

    def change(obj: Obj) -> None:
        obj["metadata"].setdefault("labels", {})["pod-security.kubernetes.io/enforce"] = "restricted"

    return CompositeFault(
        Edit(bed, "namespaces", bed.namespace, change, namespace=""), ReplacePods(bed, selector_of(bed, service))
    )


# Configuration and storage


@fault("missing_configmap")
def missing_configmap(bed: Testbed, service: str, config_map: str) -> Fault:
    """A config map that a workload mounts is deleted, and its pods restart."""
    return CompositeFault(Removal(bed, "configmaps", config_map), ReplacePods(bed, selector_of(bed, service)))


@fault("pvc_claim_mismatch")
def pvc_claim_mismatch(bed: Testbed, service: str) -> Fault:
    """A workload mounts a claim that does not exist."""

    def change(obj: Obj) -> None:
        for volume in pod_spec(obj).get("volumes", ()):
            claim = volume.get("persistentVolumeClaim")
            if claim and not claim["claimName"].endswith("-broken"):
                claim["claimName"] += "-data"

    return workload_edit(bed, service, change)


class DeleteVolumes(Fault):
    """Deletes the volumes behind a workload's bound claims."""

    def __init__(self, bed: Testbed, service: str) -> None:
        self._bed = bed
        self._service = service
        self._before: list[Obj] = []

    @property
    def changes(self) -> frozenset[str]:
        return frozenset(str(volume["metadata"]["name"]) for volume in self._before)

    def inject(self) -> None:
        api, namespace = self._bed.kubernetes, self._bed.namespace
        spec = pod_spec(api.get("deployments", self._service, namespace))
        claims = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in spec["volumes"]
            if "persistentVolumeClaim" in volume
        ]
        names = [api.get("persistentvolumeclaims", claim, namespace)["spec"]["volumeName"] for claim in claims]
        self._before = [api.get("persistentvolumes", name) for name in names]
        for name in names:
            api.delete("persistentvolumes", name)
            # A finalizer protects a bound volume from deletion.
            api.patch("persistentvolumes", name, {"metadata": {"finalizers": None}})
        self._bed.wait_for(self.in_place, 60.0, f"the volumes of {self._service} to go")

    def recover(self) -> None:
        for volume in self._before:
            if self._bed.kubernetes.find("persistentvolumes", volume["metadata"]["name"]) is None:
                copy = as_new(volume)
                copy["spec"]["claimRef"].pop("resourceVersion", None)
                self._bed.kubernetes.create(copy)

    def in_place(self) -> bool:
        names = [volume["metadata"]["name"] for volume in self._before]
        return all(self._bed.kubernetes.find("persistentvolumes", name) is None for name in names)


@fault("volumes_lost")
def volumes_lost(bed: Testbed, service: str) -> Fault:
    """A workload's volumes are deleted, and it restarts."""
    return CompositeFault(DeleteVolumes(bed, service), ReplacePods(bed, selector_of(bed, service)))


@fault("duplicate_pvc_mounts")
def duplicate_pvc_mounts(bed: Testbed, service: str) -> Fault:
    """Two replicas on two nodes mount a ReadWriteOnce volume."""
    claim = f"{service}-cache"
    manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": bed.namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }

    def change(obj: Obj) -> None:
        labels = obj["spec"]["selector"]["matchLabels"]
        rule = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": "kubernetes.io/hostname"}
        spec = pod_spec(obj)
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
        spec.setdefault("volumes", []).append({"name": "cache", "persistentVolumeClaim": {"claimName": claim}})
        first_container(obj).setdefault("volumeMounts", []).append({"name": "cache", "mountPath": "/cache"})

    scale_to_two = Edit(bed, "deployments", service, lambda obj: obj["spec"].update(replicas=2))
    return CompositeFault(Addition(bed, manifest), workload_edit(bed, service, change), scale_to_two)


# DNS


@fault("wrong_dns_policy")
def wrong_dns_policy(bed: Testbed, service: str, nameserver: str = "8.8.8.8") -> Fault:
    """A workload's pods use a name server outside of the cluster, which cannot resolve its Services."""

    def change(obj: Obj) -> None:
        pod_spec(obj).update(dnsPolicy="None", dnsConfig={"nameservers": [nameserver]})

    return workload_edit(bed, service, change)
