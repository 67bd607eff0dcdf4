"""The API server of an embedded cluster calls no address outside the simulation, whatever objects and requests name."""

from __future__ import annotations

import select
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.errors import SreArenaError
from srearena.service.kubernetes import Kubernetes

POD = {"apiVersion": "v1", "kind": "Pod"}


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server on every address of this machine."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        yield server


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with start_embedded(in_process=True) as running:
        yield running


def _machine_addresses() -> list[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # selects the interface; a datagram socket sends nothing on connect
        return [str(probe.getsockname()[0])]
    return []


def _connected(listener: socket.socket) -> bool:
    return bool(select.select([listener], [], [], 0.2)[0])


def _webhook(name: str, client: dict[str, Any]) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    hook = {
        "name": f"{name}.example.com",
        "clientConfig": client,
        "rules": rules,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 1,
        "failurePolicy": "Ignore",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "own-address", "own-name"])
def test_a_webhook_url_is_resolved_in_the_simulated_network(
    cluster: Cluster, listener: socket.socket, host: str
) -> None:
    port = listener.getsockname()[1]
    host = {"own-address": (_machine_addresses() or ["10.0.0.1"])[0], "own-name": socket.gethostname()}.get(host, host)
    with Kubernetes.of(cluster) as api:
        api.create(_webhook("out", {"url": f"https://{host}:{port}/review"}))
        with cluster.fast_forward(10):
            api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen"}}, "default")
    assert not _connected(listener)


def test_services_endpoints_and_proxies_stay_inside(cluster: Cluster, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    address = (_machine_addresses() or ["10.0.0.1"])[0]
    with Kubernetes.of(cluster) as api:
        container = {"name": "shell", "image": "busybox:1.36", "command": ["sleep", "9999"]}
        for name, spec in (("plain", {}), ("host", {"hostNetwork": True})):
            api.create({**POD, "metadata": {"name": name}, "spec": {"containers": [container], **spec}}, "default")
        meta = {"name": "out"}
        for service, spec in (
            (meta, {"ports": [{"port": port}]}),
            ({"name": "alias"}, {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}),
        ):
            api.create({"apiVersion": "v1", "kind": "Service", "metadata": service, "spec": spec}, "default")
        subset = {"addresses": [{"ip": address}], "ports": [{"port": port}]}
        with suppress(SreArenaError):
            api.create({"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": [subset]}, "default")
        cluster.wait(30)
        api.create(_webhook("out", {"service": {"namespace": "default", "name": "out", "port": port}}))
        with cluster.fast_forward(10):
            api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen"}}, "default")
        core = "/api/v1"
        paths = [
            f"{core}/namespaces/default/services/out:{port}/proxy/",
            f"{core}/namespaces/default/services/alias:{port}/proxy/",
            f"{core}/namespaces/default/pods/plain:{port}/proxy/",
            f"{core}/namespaces/default/pods/host:{port}/proxy/",
            f"{core}/nodes/worker-1:{port}/proxy/",
            f"{core}/nodes/http:worker-1:{port}/proxy/healthz",
        ]
        for path in paths:
            with suppress(SreArenaError), cluster.fast_forward(10):
                api.raw(path)
        for pod in ("plain", "host"):
            for host in ("127.0.0.1", address):
                script = f"wget -T 2 -O - http://{host}:{port}/; nc -z -w 2 {host} {port}; true"
                api.exec(pod, ["sh", "-c", script], "default")
        reachable = {"name": "out", "namespace": "default", "port": port}
        service_api = {"group": "out.example.com", "version": "v1", "service": reachable, "insecureSkipTLSVerify": True}
        with suppress(SreArenaError):
            name = {"name": "v1.out.example.com"}
            spec = {**service_api, "groupPriorityMinimum": 100, "versionPriority": 100}
            kind = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
            api.create({**kind, "metadata": name, "spec": spec})
        cluster.wait(40)
        with suppress(SreArenaError):
            api.raw("/apis/out.example.com/v1")
    assert not _connected(listener)


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_port_forwards_end_at_the_pod(cluster: Cluster, listener: socket.socket, tmp_path: Path) -> None:
    port = listener.getsockname()[1]
    with Kubernetes.of(cluster) as api:
        container = {"name": "shell", "image": "busybox:1.36", "command": ["sleep", "9999"]}
        api.create(
            {**POD, "metadata": {"name": "host"}, "spec": {"containers": [container], "hostNetwork": True}}, "default"
        )
        cluster.wait(30)
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "HOME": str(tmp_path)}
    kubectl = shutil.which("kubectl")
    assert kubectl is not None
    command = [kubectl, "port-forward", "pod/host", f":{port}"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as forward:
        assert forward.stdout is not None
        local = int(forward.stdout.readline().split("127.0.0.1:")[1].split()[0])
        with socket.create_connection(("127.0.0.1", local), timeout=5) as client:
            client.settimeout(5)
            with suppress(OSError):
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                client.recv(1)
        forward.terminate()
    assert not _connected(listener)
