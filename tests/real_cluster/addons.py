"""What runs on a cluster so that it is whole: names (CoreDNS), volumes (local-path-provisioner), metrics, and helm.

Each is compiled from its published module. The objects of CoreDNS, the default storage class and the metrics server
are the very ones that the embedded cluster is born with, so they are checked here as well.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.real_cluster.layout import CACHE
from tests.real_cluster.machines import RealClusterError

BORN_WITH = Path(__file__).parents[2] / "srearena/cluster/embedded/bootstrap/manifests"
OWN = Path(__file__).parent / "manifests"
MANIFESTS = (BORN_WITH / "dns.yaml", BORN_WITH / "storage.yaml", OWN / "provisioner.yaml", BORN_WITH / "metrics.yaml")
DEPLOYMENTS = ("kube-system/coredns", "local-path-storage/local-path-provisioner", "kube-system/metrics-server")


@dataclass(frozen=True)
class Program:
    """A program compiled from its module; `image` is what it is called on the cluster, if it runs there."""

    name: str
    package: str
    version: str
    image: str = ""

    @property
    def path(self) -> Path:
        return CACHE / f"{self.name}-{self.version}"

    @property
    def inside(self) -> str:
        return f"/usr/bin/{self.name}"

    def build(self) -> None:
        """Compile it, once, into the cache."""
        if self.path.exists():
            return
        folder = CACHE / "unfinished"
        environment = {
            **os.environ,
            "GOBIN": str(folder),
            "CGO_ENABLED": "0",
            "GOFLAGS": os.environ.get("GOFLAGS", "-p=1"),
        }
        command = ["nice", "-n", "15", "go", "install", "-ldflags", "-s -w", f"{self.package}@{self.version}"]
        if subprocess.run(command, env=environment, check=False).returncode:
            raise RealClusterError(f"{self.name} does not compile from {self.package}@{self.version}; see above")
        (folder / self.name).rename(self.path)


COREDNS = Program("coredns", "github.com/coredns/coredns", "v1.12.1", "registry.k8s.io/coredns/coredns:v1.12.1")
METRICS_SERVER = Program(
    "metrics-server",
    "sigs.k8s.io/metrics-server/cmd/metrics-server",
    "v0.9.0",
    "registry.k8s.io/metrics-server/metrics-server:v0.9.0",
)
LOCAL_PATH_PROVISIONER = Program(
    "local-path-provisioner",
    "github.com/rancher/local-path-provisioner",
    "v0.0.30",
    "docker.io/rancher/local-path-provisioner:v0.0.30",
)
HELM = Program("helm", "helm.sh/helm/v3/cmd/helm", "v3.19.0")
PROGRAMS = (COREDNS, METRICS_SERVER, LOCAL_PATH_PROVISIONER, HELM)


def manifests() -> str:
    """All objects, with the images that were made here: of the metrics server, not every version is published."""
    text = "\n---\n".join(path.read_text() for path in MANIFESTS)
    for program in PROGRAMS:
        if program.image:
            repository = program.image.rpartition(":")[0]
            text = re.sub(rf"{re.escape(repository)}:\S+", program.image, text)
    return text
