"""A served world for each test: with namespaces only, or with a node and a pod that runs."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from srearena.cluster.embedded.kubelet.agent import Agent
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.machine.machine import NodeSpec
from tests.clusters import RunningApi, bare_world, running

TALKER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "talker", "labels": {"app": "talker"}},
    "spec": {
        "nodeName": "worker",
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "main",
                "image": "busybox:1.36",
                "command": ["sh", "-c", "i=0; while true; do echo line $i; i=$((i+1)); sleep 1; done"],
            },
            {"name": "web", "image": "nginx:1.27", "ports": [{"name": "http", "containerPort": 80}]},
        ],
    },
}


@pytest.fixture
def api() -> Iterator[RunningApi]:
    with running(bare_world()) as served:
        yield served


@pytest.fixture
def http(api: RunningApi) -> Iterator[httpx.Client]:
    """The superuser's HTTP client."""
    with api.http() as client:
        yield client


@pytest.fixture
def pods() -> Iterator[RunningApi]:
    """A world with one node, on which the pod `talker` (containers `main` and `web`) runs."""
    world = bare_world()
    nodes = Nodes(world)
    nodes.add(NodeSpec(name="worker"))
    with running(world, agent=Agent(nodes)) as served, served.http() as client:
        served.advance(5)
        client.post("/api/v1/namespaces/default/pods", json=TALKER).raise_for_status()
        served.advance(30)
        yield served
