"""JobSet's controller end to end: CRDs with rules, four webhooks, leader election, watches; jobs run and finish."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from srearena.cluster import Cluster, start_embedded
from srearena.generators.certificates import Authority
from srearena.service.errors import ApiRefused
from srearena.service.kubernetes import Kubernetes
from tests.webhook_server import NAME, NAMESPACE, WebhookServer

CACHE = Path(os.environ.get("SREARENA_OPERATORS_CACHE", "/nonexistent"))
pytestmark = pytest.mark.skipif(
    not (CACHE / "jobset").exists(), reason="SREARENA_OPERATORS_CACHE names no folder with built operators"
)
SYSTEM = "jobset-system"
JOBSETS = "jobsets.jobset.x-k8s.io"
SPEED = 4.0
RIGHTS = ("service_account", "role", "role_binding", "leader_election_role", "leader_election_role_binding")


@dataclass
class Controller:
    """The running controller, and what it needs of the machine."""

    cluster: Cluster
    api: Kubernetes
    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, check: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
        """What a check finds, as soon as it finds something."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            if found := check():
                return found
            time.sleep(0.1)
        raise AssertionError(f"{what}: not within {seconds:.0f} s\n{self.log.read_text()[-3000:]}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def manifests(name: str) -> Iterator[dict[str, Any]]:
    for document in yaml.safe_load_all((CACHE / "jobset-config" / name).read_text()):
        if document:
            yield document


def install(api: Kubernetes) -> None:
    """Definitions, rights and an account; the webhooks are registered once the controller answers them."""
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    for document in manifests("crd/bases/jobset.x-k8s.io_jobsets.yaml"):
        api.create(document)
    for name in RIGHTS:
        for document in manifests(f"rbac/{name}.yaml"):
            for subject in document.get("subjects") or ():
                subject["namespace"] = SYSTEM
            if not document["kind"].startswith("Cluster"):
                document["metadata"]["namespace"] = SYSTEM
            api.create(document, document["metadata"].get("namespace"))


def register(api: Kubernetes, webhooks: WebhookServer) -> None:
    for document in manifests("webhook/manifests.yaml"):
        document["metadata"]["name"] = f"jobset-{document['metadata']['name']}"
        for hook in document["webhooks"]:
            path = hook["clientConfig"]["service"]["path"]
            service = {"namespace": NAMESPACE, "name": NAME, "path": path}
            hook["clientConfig"] = {**webhooks.client_config, "service": service}
            if "pods" in hook["rules"][0]["resources"]:
                hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
        api.create(document)


def kubeconfig_of(cluster: Cluster, api: Kubernetes, account: str) -> dict[str, Any]:
    """A kubeconfig with a token of a service account."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}}
    path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{account}/token"
    token = api.raw(path, method="POST", body=request)["status"]["token"]
    config: dict[str, Any] = yaml.safe_load(Path(cluster.kubeconfig).read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    return config


def relay_to(port: int) -> Callable[[str, bytes], bytes]:
    unverified = ssl._create_unverified_context()

    def relay(path: str, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", body, headers)
        with urllib.request.urlopen(request, timeout=10, context=unverified) as reply:
            answer: bytes = reply.read()
        return answer

    return relay


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    folder = tmp_path_factory.mktemp("jobset")
    port, health = free_port(), free_port()
    since = datetime.now(UTC) - timedelta(days=1)
    issued = Authority("webhooks", "s", since).issue("localhost", since, since + timedelta(days=30))
    (folder / "tls.crt").write_text(issued.certificate)
    (folder / "tls.key").write_text(issued.key)
    settings = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": True, "resourceNamespace": SYSTEM},
        "internalCertManagement": {"enable": False},
        "webhook": {"port": port, "host": "127.0.0.1", "certDir": str(folder)},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    log = folder / "log"
    with (
        start_embedded(in_process=True, nodes=2, speed=SPEED) as cluster,
        Kubernetes.of(cluster) as api,
        WebhookServer(cluster) as webhooks,
        log.open("wb") as output,
    ):
        install(api)
        config = kubeconfig_of(cluster, api, "controller-manager")
        (folder / "kubeconfig").write_text(yaml.safe_dump(config))
        words = [str(CACHE / "jobset"), f"--kubeconfig={folder / 'kubeconfig'}", f"--config={folder / 'config.yaml'}"]
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT)
        try:
            running = Controller(cluster, api, process, log)
            running.wait_for(lambda: is_ready(health), "the controller")
            webhooks.relay = relay_to(port)
            register(api, webhooks)
            yield running
        finally:
            process.terminate()
            process.wait(20)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def jobset(name: str, script: str, replicas: int = 2) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", script]}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"spec": {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": pod}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicatedJobs": [{"name": "workers", "replicas": replicas, "template": job}]},
    }


def outcome(controller: Controller, name: str) -> str:
    found = controller.api.get(JOBSETS, name, "default")
    rows = (found.get("status") or {}).get("conditions") or ()
    return next((row["type"] for row in rows if row["type"] in ("Completed", "Failed") and row["status"] == "True"), "")


def test_the_controller_leads_with_a_lease(controller: Controller) -> None:
    (lease,) = controller.wait_for(lambda: controller.api.list("leases.coordination.k8s.io", SYSTEM), "a lease")
    assert lease["spec"]["holderIdentity"]


def test_jobs_of_a_set_run_and_complete_it(controller: Controller) -> None:
    created = controller.api.create(jobset("done", "echo $JOB_COMPLETION_INDEX; sleep 2"))
    # By the mutating webhook: what the definition's schema alone does not default.
    assert created["spec"]["replicatedJobs"][0]["template"]["spec"]["completionMode"] == "Indexed"
    assert created["spec"]["network"]["enableDNSHostnames"] is True
    assert controller.wait_for(lambda: outcome(controller, "done"), "the end of the set") == "Completed"
    api = controller.api
    jobs = api.list("jobs.batch", "default", labels="jobset.sigs.k8s.io/jobset-name=done")
    assert sorted(job["metadata"]["name"] for job in jobs) == ["done-workers-0", "done-workers-1"]
    assert api.get("services", "done", "default")["spec"]["clusterIP"] == "None"
    reasons = {event["reason"] for event in api.list("events", "default")}
    assert "AllJobsCompleted" in reasons


def test_a_failed_job_fails_the_set(controller: Controller) -> None:
    controller.api.create(jobset("broken", "exit 3", replicas=1))
    assert controller.wait_for(lambda: outcome(controller, "broken"), "the end of the set") == "Failed"


def test_the_validating_webhook_and_the_rules_refuse(controller: Controller) -> None:
    wrong = jobset("wrong", "true")
    wrong["spec"]["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["nobody"]}
    with pytest.raises(ApiRefused, match=r"does not appear in \.spec\.ReplicatedJobs"):
        controller.api.create(wrong)
    controller.api.create(jobset("fixed", "sleep 600"))
    with pytest.raises(ApiRefused, match="immutable"):
        controller.api.patch(JOBSETS, "fixed", {"spec": {"managedBy": "example.com/other"}}, "default")


def test_a_deleted_set_takes_its_jobs_with_it(controller: Controller) -> None:
    labels = "jobset.sigs.k8s.io/jobset-name=gone"
    controller.api.create(jobset("gone", "sleep 600"))
    controller.wait_for(lambda: len(controller.api.list("jobs.batch", "default", labels=labels)) == 2, "two jobs")
    controller.api.delete(JOBSETS, "gone", "default")
    controller.wait_for(lambda: not controller.api.list("jobs.batch", "default", labels=labels), "the end of the jobs")
