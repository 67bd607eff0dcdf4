"""Programs of this machine, and how the client takes a server's moods."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from srearena.cluster import Cluster
from srearena.service.errors import ApiRefused, CommandFailed, ToolMissing
from srearena.service.kubectl import KubeCtl
from srearena.service.kubernetes import Kubernetes
from srearena.service.shell import Shell


def test_a_program_gives_its_output_or_its_complaint(tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"WHO": "me"})
    assert shell.run("sh", "-c", "pwd; echo $WHO; cat", stdin="x").stdout == f"{tmp_path}\nme\nx"
    with pytest.raises(CommandFailed, match="sh -c echo no >&2; exit 3: no") as caught:
        shell.run("sh", "-c", "echo no >&2; exit 3")
    assert (caught.value.status, caught.value.errors) == (3, "no\n")
    assert shell.run("sh", "-c", "exit 3", check=False).returncode == 3
    with pytest.raises(CommandFailed, match=r"did not end within 0\.1 s"):
        shell.run("sleep", "5", timeout=0.1)
    with pytest.raises(ToolMissing, match="no-such-program is not installed"):
        shell.run("no-such-program")


@pytest.mark.kubectl
def test_kubectl_runs_what_people_type(cluster: Cluster) -> None:
    with KubeCtl(cluster.kubeconfig, "kube-system") as kubectl:
        assert "coredns" in kubectl.exec_command("kubectl get deploy -o 'custom-columns=NAME:.metadata.name'")
        assert 'pods "none" not found' in kubectl.exec_command("get pod none")
        with pytest.raises(CommandFailed, match='pods "none" not found'):
            kubectl.run("get", "pod", "none")
        assert kubectl.get_json("deploy", "coredns")["kind"] == "Deployment"


def test_without_kubectl_there_is_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match=r"kubectl is not installed: get it from https://kubernetes\.io"):
        KubeCtl(tmp_path / "config")


GROUPS = {"kind": "APIGroupList", "groups": [{"name": "apps", "versions": [{"version": "v1"}]}]}
CORE = [
    {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["list"], "shortNames": ["po"]},
    {"name": "pods/log", "kind": "Pod", "namespaced": True, "verbs": ["get"]},
]
ANSWERS = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": GROUPS,
    "/api/v1": {"kind": "APIResourceList", "resources": CORE},
    "/apis/apps/v1": {
        "kind": "APIResourceList",
        "resources": [{"name": "deployments", "singularName": "deployment", "kind": "Deployment", "namespaced": True}],
    },
    "/api/v1/pods?limit=500": {"kind": "PodList", "items": [{"metadata": {"name": "x"}}]},
}


@contextmanager
def old_server(refusals: int, tmp_path: Path) -> Iterator[tuple[Path, list[str]]]:
    """A server without aggregated discovery, which is too busy the first few times."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            requests.append(self.path)
            busy = self.path.startswith("/api/v1/pods") and requests.count(self.path) <= refusals
            body = b"busy" if busy else json.dumps(ANSWERS[self.path]).encode()
            self.send_response(429 if busy else 200)
            self.send_header("Content-Length", str(len(body)))
            if busy:
                self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
        "current-context": "x",
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    try:
        yield path, requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_busy_server_is_asked_again_and_an_old_one_is_understood(tmp_path: Path) -> None:
    with old_server(2, tmp_path) as (config, requests), Kubernetes(config) as api:
        assert api.resource("deployment").name == "deployments.apps"
        assert [pod["metadata"]["name"] for pod in api.list("po")] == ["x"]
        assert requests.count("/api/v1/pods?limit=500") == 3


def test_a_server_that_stays_busy_is_given_up(tmp_path: Path) -> None:
    with old_server(99, tmp_path) as (config, requests), Kubernetes(config) as api:
        with pytest.raises(ApiRefused, match="busy"):
            api.list("po")
        assert requests.count("/api/v1/pods?limit=500") == 5
