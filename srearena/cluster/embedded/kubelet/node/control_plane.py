"""The control plane's static pods and the images a node comes with, as kubeadm sets them up."""

from __future__ import annotations

from collections.abc import Sequence

from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.programs.system.control_plane import VERSION

ETCD_IMAGE = "registry.k8s.io/etcd:3.6.4-0"
PRELOADED = (
    ETCD_IMAGE,
    f"registry.k8s.io/kube-apiserver:{VERSION}",
    f"registry.k8s.io/kube-controller-manager:{VERSION}",
    f"registry.k8s.io/kube-proxy:{VERSION}",
    f"registry.k8s.io/kube-scheduler:{VERSION}",
    "registry.k8s.io/coredns/coredns:v1.12.1",
    "registry.k8s.io/pause:3.10",
    "docker.io/kindest/kindnetd:v20250512-df8de77b",
    "docker.io/kindest/local-path-provisioner:v20250214-acbabc1a",
)
"""What a node image comes with."""


def control_plane_manifests(machine: Machine) -> Sequence[Obj]:
    """The manifests kubeadm writes into /etc/kubernetes/manifests."""
    certificates = {"name": "k8s-certs", "path": "/etc/kubernetes/pki"}
    return (
        _manifest(
            "etcd",
            ETCD_IMAGE,
            ["etcd", "--data-dir=/var/lib/etcd", f"--name={machine.name}"],
            {"cpu": "100m", "memory": "100Mi"},
            2381,
            ({"name": "etcd-data", "path": "/var/lib/etcd"}, certificates),
            scheme="HTTP",
            paths=("/livez", "/readyz", "/readyz"),
        ),
        _manifest(
            "kube-apiserver",
            f"registry.k8s.io/kube-apiserver:{VERSION}",
            ["kube-apiserver", f"--advertise-address={machine.address}", "--secure-port=6443"],
            {"cpu": "250m"},
            6443,
            ({"name": "ca-certs", "path": "/etc/ssl/certs"}, certificates),
            host=machine.address,
            paths=("/livez", "/readyz", "/livez"),
        ),
        _manifest(
            "kube-controller-manager",
            f"registry.k8s.io/kube-controller-manager:{VERSION}",
            ["kube-controller-manager", "--bind-address=127.0.0.1", "--leader-elect=true"],
            {"cpu": "200m"},
            10257,
            ({"name": "ca-certs", "path": "/etc/ssl/certs"}, certificates),
            paths=("/healthz", "", "/healthz"),
        ),
        _manifest(
            "kube-scheduler",
            f"registry.k8s.io/kube-scheduler:{VERSION}",
            ["kube-scheduler", "--bind-address=127.0.0.1", "--leader-elect=true"],
            {"cpu": "100m"},
            10259,
            ({"name": "kubeconfig", "path": "/etc/kubernetes"},),
            paths=("/livez", "/readyz", "/livez"),
        ),
    )


def _manifest(
    name: str,
    image: str,
    command: list[str],
    requests: dict[str, str],
    port: int,
    folders: Sequence[dict[str, str]],
    *,
    host: str = "127.0.0.1",
    scheme: str = "HTTPS",
    paths: tuple[str, str, str],
) -> Obj:
    """`paths` are those of the liveness, readiness and startup probes; an empty one means no such probe."""
    action = {"host": host, "port": "probe-port", "scheme": scheme}
    live, ready, started = paths
    container: Obj = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": {"requests": requests},
        "ports": [{"name": "probe-port", "containerPort": port, "hostPort": port, "protocol": "TCP"}],
        "livenessProbe": _probe(action, live, initial=10, failures=8),
        "startupProbe": _probe(action, started, initial=10, failures=24),
        "volumeMounts": [{"name": folder["name"], "mountPath": folder["path"]} for folder in folders],
    }
    if ready:
        container["readinessProbe"] = {**_probe(action, ready, failures=3), "periodSeconds": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "labels": {"component": name, "tier": "control-plane"},
        },
        "spec": {
            "containers": [container],
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [
                {"name": folder["name"], "hostPath": {"path": folder["path"], "type": "DirectoryOrCreate"}}
                for folder in folders
            ],
        },
    }


def _probe(action: Obj, path: str, *, initial: int = 0, failures: int) -> Obj:
    probe: Obj = {
        "failureThreshold": failures,
        "httpGet": {**action, "path": path},
        "periodSeconds": 10,
        "timeoutSeconds": 15,
    }
    if initial:
        probe["initialDelaySeconds"] = initial
    return probe
