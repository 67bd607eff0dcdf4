"""What runs on a cluster so that it is whole: names (CoreDNS), volumes (local-path-provisioner), metrics, and helm.

Each is compiled from its published module. The objects of CoreDNS, the default storage class and the metrics server
are the very ones that the embedded cluster is born with, so they are checked here as well.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.real_cluster.compiling import Dependency, Part, Program
from tests.real_cluster.layout import KUBERNETES

BORN_WITH = Path(__file__).parents[2] / "srearena/cluster/embedded/bootstrap/manifests"
OWN = Path(__file__).parent / "manifests"
MANIFESTS = (
    BORN_WITH / "dns.yaml",
    BORN_WITH / "storage.yaml",
    OWN / "provisioner.yaml",
    BORN_WITH / "metrics.yaml",
    OWN / "network-policies.yaml",
)
DEPLOYMENTS = ("kube-system/coredns", "local-path-storage/local-path-provisioner", "kube-system/metrics-server")


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
# The project's own module is not on the proxy; k3s maintains a fork of it.
KUBE_ROUTER = Dependency(
    "kube-router",
    "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
    "v2.6.2",
    module="github.com/cloudnativelabs/kube-router/v2",
    fork="github.com/k3s-io/kube-router/v2",
)
"""Runs on every node, beside kube-proxy, for network policies only."""
AGNHOST = Part(
    "agnhost", "k8s.io/kubernetes/test/images/agnhost", KUBERNETES, "registry.k8s.io/e2e-test-images/agnhost:2.53"
)
"""The servers of Kubernetes' own tests; no object of the cluster runs it."""
HELM = Program("helm", "helm.sh/helm/v3/cmd/helm", "v3.19.0")
PROGRAMS = (COREDNS, METRICS_SERVER, LOCAL_PATH_PROVISIONER, KUBE_ROUTER, AGNHOST, HELM)


def manifests() -> str:
    """All objects, with the images that were made here: of the metrics server, not every version is published."""
    text = "\n---\n".join(path.read_text() for path in MANIFESTS)
    for program in PROGRAMS:
        if program.image:
            repository = program.image.rpartition(":")[0]
            text = re.sub(rf"{re.escape(repository)}:\S+", program.image, text)
    return text
