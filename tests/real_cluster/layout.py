"""Where the parts of the real cluster are: folders, addresses and names, all of our own making.

Every node is a set of namespaces (mount, network, process, host name) held by one process; everything that a node
does (mounts, interfaces, firewall rules, containers) lives in them and ends with that process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

KUBERNETES = "v1.34.1"
CACHE = Path(os.environ.get("SREARENA_REAL_CLUSTER_CACHE", "~/.cache/srearena/real-cluster")).expanduser()
NUMBER = int(os.environ.get("SREARENA_REAL_CLUSTER", "0"))
"""Which of several clusters on this machine is meant; each has its own folder, bridge, addresses and cgroups."""
STATE = Path(f"/var/tmp/srearena-real-cluster{f'-{NUMBER}' if NUMBER else ''}")
PROGRAM = CACHE / f"kubernetes-{KUBERNETES}"
RUNNING = STATE / "kubernetes"
"""A link to the program that the cluster runs: parts of a node are started again also where HOME is another."""
KUBECONFIG = STATE / "kubeconfig"

PREFIX = f"srearena{NUMBER or ''}"
BRIDGE = f"srearena{NUMBER}"
NETWORK = f"10.199.{NUMBER}"
HOST_ADDRESS = f"{NETWORK}.1"
SERVICE_RANGE = "10.96.0.0/16"
POD_RANGE = "10.244.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"


@dataclass(frozen=True)
class Node:
    """One machine of the cluster; the first one also runs the control plane."""

    index: int

    @property
    def name(self) -> str:
        return f"worker-{self.index}" if self.index else "control-plane"

    @property
    def address(self) -> str:
        return f"{NETWORK}.{10 + self.index}"

    @property
    def pod_range(self) -> str:
        return f"10.244.{self.index}.0/24"

    @property
    def folder(self) -> Path:
        return STATE / self.name

    @property
    def link(self) -> str:
        return f"{PREFIX}-{self.index}"

    @property
    def cgroup(self) -> str:
        return f"{PREFIX}-{self.name}"


CONTROL_PLANE = Node(0)
API_URL = f"https://{CONTROL_PLANE.address}:6443"
