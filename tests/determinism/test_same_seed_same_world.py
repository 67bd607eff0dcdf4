"""Rule three: the same seed and the same script give the same world, to the byte."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from srearena.cluster import start_embedded
from srearena.cluster.embedded import assembly
from srearena.cluster.embedded.options import ClusterOptions
from tests.kubectl.operator import KUBECTL, Operator

START = 1_767_225_600.0  # 2026-01-01T00:00:00Z
APPLICATION = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: nginx
        image: nginx:1.27
        readinessProbe: {httpGet: {path: /, port: 80}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: visitor}
spec:
  containers:
  - name: c
    image: busybox:1.36
    command: [sh, -c, "while true; do wget -qO- http://web >/dev/null && date; sleep 3; done"]
---
apiVersion: v1
kind: Pod
metadata: {name: unwell}
spec: {containers: [{name: c, image: busybox, command: [sh, -c, "echo ouch; exit 1"]}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox, command: [date]}]}}
"""
SHOWN = (
    "/api/v1/pods",
    "/api/v1/events",
    "/api/v1/services",
    "/api/v1/nodes",
    "/api/v1/configmaps",
    "/api/v1/endpoints",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/daemonsets",
    "/apis/batch/v1/jobs",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/coordination.k8s.io/v1/leases",
)


def lived_through(home: Path, *, seed: int) -> dict[str, str]:
    """A short life of a cluster, told by the API: every list and every log, as text."""
    with start_embedded(in_process=True, speed=0, start=START, seed=seed, secret="the same every time") as cluster:
        operator = Operator(cluster, home)
        operator.kubectl("apply", "-f", "-", stdin=APPLICATION)
        operator.wait(45)
        operator.kubectl("scale", "deployment/web", "--replicas=2")
        operator.wait(30)
        operator.kubectl("set", "image", "deployment/web", "nginx=nginx:nosuchtag")
        operator.kubectl("delete", "pod", "visitor", "--wait=false")
        operator.wait(120)
        documents = {path: operator.kubectl("get", "--raw", path) for path in SHOWN}
        for pod in json.loads(documents["/api/v1/pods"])["items"]:
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            documents[f"log of {namespace}/{name}"] = operator.run("logs", "-n", namespace, name, "--timestamps").out
        return documents


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_two_runs_with_one_seed_are_equal_and_another_seed_is_another_world(tmp_path: Path) -> None:
    first = lived_through(tmp_path, seed=7)
    second = lived_through(tmp_path, seed=7)
    assert first.keys() == second.keys()
    different = [name for name in first if first[name] != second[name]]
    assert different == []
    assert any(text for name, text in first.items() if name.startswith("log of default/"))
    other = lived_through(tmp_path, seed=8)
    assert other["/api/v1/pods"] != first["/api/v1/pods"]


def test_a_cluster_does_not_depend_on_the_fraction_of_the_second_it_starts_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times in objects are whole seconds: what kubelets compute from them must not depend on chance."""
    worlds = []
    for moment in (START + 0.05, START + 100.45, START + 200.95):
        monkeypatch.setattr(assembly, "wall_now", partial(float, moment))
        store = assembly.assemble(ClusterOptions(seed=5)).world.store
        worlds.append(
            {str(obj["metadata"]["uid"]) for resource in store.resources() for obj in store.objects(resource)}
        )
    assert worlds[0] == worlds[1] == worlds[2]
