"""Other versions of kubectl: a day's work with each.

They are found beside the usual one (`kubectl.1.29`, as Google's SDK installs them) and in the folder that
SREARENA_KUBECTLS names, which `scripts/kubectl-versions` fills.

A newer API server serves clients of several minor versions, older streams (SPDY) and older discovery included.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from srearena.cluster import Cluster
from tests.selection import rotating_member, rotation_seed

from . import operator as terminal
from .operator import Operator


def _installed() -> list[str]:
    found = shutil.which("kubectl")
    built = os.environ.get("SREARENA_KUBECTLS")
    folders = [*([Path(found).resolve().parent] if found else []), *([Path(built)] if built else [])]
    return sorted(str(program) for folder in folders for program in folder.glob("kubectl.1.*"))


OTHERS = _installed()
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx, ports: [{containerPort: 80}]}]
"""
READ = (
    "version -o json",
    "cluster-info",
    "api-resources",
    "api-versions",
    "get nodes -o wide",
    "get all -o wide",
    "get pods -A --sort-by=.metadata.creationTimestamp",
    "get deployment web -o yaml",
    "get pods -l app=web -o jsonpath={.items[*].status.podIP}",
    "get events --field-selector=type=Normal",
    "describe deployment web",
    "describe pods -l app=web",
    "describe node",
    "explain deployment.spec.strategy",
    "explain deployment.spec.strategy --output=plaintext-openapiv2",
    "logs deployment/web --tail=5",
    "top nodes",
    "auth can-i delete pods",
    "rollout status deployment/web",
    "rollout history deployment/web",
)
CHANGE = (
    "scale deployment web --replicas=3",
    "set image deployment/web web=nginx:1.27",
    "set env deployment/web COLOR=blue",
    "rollout undo deployment/web",
    "rollout restart deployment/web",
    "label deployment web tier=front --overwrite",
    "annotate deployment web note=checked",
    'patch deployment web -p {"spec":{"minReadySeconds":1}}',
    "expose deployment web --port=80",
    "autoscale deployment web --min=1 --max=3",
    "create configmap settings --from-literal=a=b",
    "cordon {node}",
    "uncordon {node}",
    "run once --image=busybox --restart=Never -- sleep 3600",
)
STREAMS = ("exec deploy/web -- cat /etc/hostname", "cp {pod}:/etc/hostname {folder}/hostname")


@pytest.mark.skipif(not OTHERS, reason="no other versions of kubectl are installed beside the usual one")
def test_a_days_work_with_another_version(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = rotating_member(OTHERS, rotation_seed())
    monkeypatch.setattr(terminal, "KUBECTL", other)
    operator = Operator(cluster, tmp_path)
    assert operator.kubectl("version", "--client").count(other.rpartition("kubectl.")[2])
    operator.apply(DEPLOYMENT)
    operator.wait(60)
    names = {"node": operator.path("{.items[0].metadata.name}", "nodes"), "folder": str(tmp_path)}
    for command in READ + CHANGE:
        operator.kubectl(*(word.format(**names) if "{node}" in word else word for word in command.split(" ")))
    operator.wait(60)
    names["pod"] = operator.path("{.items[0].metadata.name}", "pods", "-l", "app=web")
    for command in STREAMS:
        operator.kubectl(*(word.format(**names) for word in command.split(" ")))
    assert (tmp_path / "hostname").read_text().strip() == names["pod"]
    assert operator.row("deployment", "web")["READY"] == "3/3"
    operator.kubectl("drain", names["node"], "--ignore-daemonsets", "--force", "--delete-emptydir-data")
    operator.kubectl("delete", "deployment,service,hpa,configmap", "web", "settings", "--ignore-not-found")
    assert "not found" in operator.fails("get", "deployment", "web")
