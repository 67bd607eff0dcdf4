"""`scripts/real-cluster build | up | load | down | status`."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from srearena.errors import SreArenaError
from tests.real_cluster import addons, programs
from tests.real_cluster.applications import bundles, parse_source
from tests.real_cluster.certificates import Authority
from tests.real_cluster.compiling import CLUSTER, SourceFolder
from tests.real_cluster.images import BUSYBOX, PYTHON, Image, write_archive
from tests.real_cluster.layout import CONTROL_PLANE, KUBECONFIG, KUBERNETES, PROGRAM, RUNNING, STATE, Node
from tests.real_cluster.machines import (
    RealClusterError,
    inside,
    run,
    start_network,
    start_node,
    start_program,
    stop_everything,
)

APPLICATIONS = STATE / "applications.tar"
NEEDED = {
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "unshare": "util-linux",
    "kubectl": "kubernetes-client",
}
"""Programs of this machine that the cluster needs, and the Debian packages they come from."""


def build(sources: Sequence[SourceFolder] = (), *, tools: bool = True) -> dict[str, Image]:
    """Compile the cluster's programs, once, into the cache; the images of these applications.

    Without `tools` only what runs on the cluster.
    """
    wanted = [program for program in addons.PROGRAMS if tools or program is not addons.HELM]
    missing = [program for program in wanted if not program.path.exists()]
    if (missing or not PROGRAM.exists()) and not shutil.which("go"):
        raise RealClusterError("go is not installed: the cluster is compiled from its published modules")
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    for program in missing:
        program.build()
    if not PROGRAM.exists():
        _build_kubernetes()
    return {name: image for bundle in bundles(sources) for name, image in bundle.images.items()}


def _build_kubernetes() -> None:
    major, minor, _ = KUBERNETES.lstrip("v").split(".")
    package = "k8s.io/component-base/version"
    values = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = " ".join(["-s -w", *(f"-X {package}.{name}={value}" for name, value in values.items())])
    unfinished = PROGRAM.with_suffix(".unfinished")
    command = ["go", "build", "-buildvcs=false", "-ldflags", flags, "-o", str(unfinished), "."]
    environment = {**os.environ, "GOFLAGS": os.environ.get("GOFLAGS", "-p=1")}
    if subprocess.run(["nice", "-n", "5", *command], cwd=CLUSTER, env=environment, check=False).returncode:
        raise RealClusterError(f"the cluster's programs do not compile; see above, sources in {CLUSTER}")
    unfinished.rename(PROGRAM)


def up(workers: int, *, with_nodes: bool, sources: Sequence[SourceFolder] = ()) -> None:
    """Start a cluster; without nodes only its control plane. The nodes know the images of these applications."""
    _check_machine()
    if STATE.exists():
        raise RealClusterError(f"{STATE} exists: a cluster runs already; stop it with `scripts/real-cluster down`")
    extra = build(sources, tools=False)
    STATE.mkdir(parents=True, mode=0o700)
    RUNNING.symlink_to(PROGRAM)
    nodes = [Node(index) for index in range(workers + 1)]
    keys = STATE / "keys"
    shutil.copy(programs.make_keys(Authority(keys), nodes), KUBECONFIG)
    start_network()
    for node in nodes if with_nodes else nodes[:1]:
        start_node(node, nodes)
    start_program(CONTROL_PLANE, "etcd", programs.etcd())
    start_program(CONTROL_PLANE, "kube-apiserver", programs.kube_apiserver(keys))
    _wait_until("the API server is ready", "get", "--raw=/readyz")
    start_program(CONTROL_PLANE, "kube-controller-manager", programs.kube_controller_manager(keys))
    start_program(CONTROL_PLANE, "kube-scheduler", programs.kube_scheduler(keys))
    _wait_until("service accounts are made", "get", "serviceaccount", "default", "-n", "default")
    if with_nodes:
        archive = STATE / "images.tar"
        write_archive(archive)
        if extra:
            write_archive(APPLICATIONS, extra)
        for node in nodes:
            start_program(node, "containerd", programs.containerd(node))
        for node in nodes:
            _import(node, archive)
            if extra:
                _import(node, APPLICATIONS)
            start_program(node, "kubelet", programs.kubelet(node, keys))
            start_program(node, "kube-proxy", programs.kube_proxy(node, keys))
        for node in nodes:
            _wait_until(f"{node.name} is registered", "get", "node", node.name)
        kubectl("label", "node", CONTROL_PLANE.name, "node-role.kubernetes.io/control-plane=")
        kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=120s")
        whole = STATE / "addons.yaml"
        whole.write_text(addons.manifests())
        kubectl("apply", "-f", str(whole))
        for node in nodes:
            start_program(node, "kube-router", programs.kube_router(node, keys))
        for deployment in addons.DEPLOYMENTS:
            namespace, name = deployment.split("/")
            kubectl("rollout", "status", "deployment", name, "-n", namespace, "--timeout=180s")
    print(f"export KUBECONFIG={KUBECONFIG}")


def load(sources: Sequence[SourceFolder]) -> None:
    """Bring the images of applications to the nodes of a running cluster, also those that have changed."""
    if not STATE.exists():
        raise RealClusterError("no cluster runs here; start one with `scripts/real-cluster up`")
    write_archive(APPLICATIONS, build(sources, tools=False))
    for node in map(Node, range(16)):
        if node.folder.exists():
            _import(node, APPLICATIONS)


def kubectl(*arguments: str) -> str:
    return run("kubectl", "--kubeconfig", KUBECONFIG, *arguments)


def _import(node: Node, archive: Path) -> None:
    for attempt in range(60):
        try:
            inside(node, "ctr", "--namespace=k8s.io", "images", "import", archive)
            return
        except RealClusterError:
            if attempt == 59:
                raise
            time.sleep(1)


def _wait_until(what: str, *arguments: str) -> None:
    for _ in range(90):
        try:
            kubectl(*arguments)
            return
        except RealClusterError as problem:
            last = problem
        time.sleep(1)
    raise RealClusterError(f"gave up waiting until {what}; logs are in {STATE}: {last}")


def _check_machine() -> None:
    if os.geteuid():
        raise RealClusterError("a real cluster needs root: it makes namespaces, cgroups and interfaces")
    missing = sorted(package for program, package in NEEDED.items() if not shutil.which(program))
    missing += [] if BUSYBOX.exists() else ["busybox-static"]
    missing += [] if PYTHON.exists() else ["python3"]
    missing += [] if Path("/usr/lib/cni/bridge").exists() else ["containernetworking-plugins"]
    if missing:
        raise RealClusterError(f"missing on this machine: apt-get install {' '.join(missing)}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/real-cluster", description=__doc__)
    parser.add_argument("action", choices=["build", "up", "load", "down", "status"])
    parser.add_argument("--workers", type=int, default=2, help="nodes beside the control plane (default 2)")
    parser.add_argument("--without-nodes", action="store_true", help="only etcd, API server, controllers, scheduler")
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="an application to build images of, and where its source is (hotel_reservation)",
    )
    chosen = parser.parse_args(arguments)
    try:
        sources = [parse_source(text) for text in chosen.source]
        if chosen.action == "build":
            build(sources)
        elif chosen.action == "up":
            up(chosen.workers, with_nodes=not chosen.without_nodes, sources=sources)
        elif chosen.action == "load":
            load(sources)
        elif chosen.action == "down":
            stop_everything()
        else:
            print(kubectl("get", "nodes", "-o", "wide") if STATE.exists() else "no cluster runs here")
    except SreArenaError as problem:
        print(f"real-cluster: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
