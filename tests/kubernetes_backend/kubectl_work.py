"""An agent's work with the real kubectl: everything that takes another way through a connection, and leavings."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.kubernetes_backend.test_leaving import named, volume

LEFT = ("priorityclasses", "persistentvolumes", "storageclasses")
"""Of each of these there is one afterwards that is called `agents`."""


def work(kubeconfig: Path, folder: Path) -> None:
    """Look around, run something in the namespace `shop`, and leave things beside it."""

    def kubectl(*words: str, given: str | None = None) -> str:
        done = subprocess.run(
            ["kubectl", f"--kubeconfig={kubeconfig}", f"--cache-dir={folder / 'cache'}", *words],
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    container = {"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", "echo hello; sleep 3600"]}
    kubectl(
        "apply",
        "-n",
        "shop",
        "-f",
        "-",
        given=json.dumps(named("Pod", "v1", "shell", spec={"containers": [container]})),
    )
    kubectl("wait", "-n", "shop", "--for=condition=Ready", "pod/shell", "--timeout=100s")  # a watch
    assert kubectl("logs", "-n", "shop", "shell") == "hello\n"
    assert kubectl("exec", "-i", "-n", "shop", "shell", "--", "cat", given="through the door\n") == "through the door\n"
    assert "kube-system" in kubectl("get", "namespaces")
    kubectl("create", "priorityclass", "agents", "--value=3")
    kubectl("label", "priorityclass", "agents", "kept=no")
    kubectl("apply", "--server-side", "-f", "-", given=json.dumps(volume("agents")))
    storage = named("StorageClass", "storage.k8s.io/v1", "agents", provisioner="example.com/x")
    kubectl("apply", "-f", "-", given=json.dumps(storage))
    kubectl("create", "priorityclass", "gone", "--value=3")
    kubectl("delete", "priorityclass", "gone")
