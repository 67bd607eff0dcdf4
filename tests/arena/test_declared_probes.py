"""A readiness probe that is removed still counts."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.conductor.problems.target_port import TargetPort
from srearena.service.kubernetes import Obj
from tests.arena.episodes import prepared_episode, shop_problem
from tests.arena.test_decoys import SHOP, agent_of, complaints

READY = ["sh", "-c", "test -e /tmp/ready"]


def probed(probe: Any) -> Obj:
    return {"spec": {"template": {"spec": {"containers": [{"name": "api", "readinessProbe": probe}]}}}}


class Probed(TargetPort):
    """A program of the healthy system is ready while a file exists, which it writes at its start."""

    def set_up(self) -> None:
        write = {"postStart": {"exec": {"command": ["sh", "-c", "echo yes > /tmp/ready"]}}}
        patch = probed({"exec": {"command": READY}})
        patch["spec"]["template"]["spec"]["containers"][0]["lifecycle"] = write
        self.kubernetes.patch("deployments", "api", patch, SHOP)
        self.cluster.wait(60)


@pytest.mark.parametrize("probe", [None, {"exec": {"command": ["true"]}}], ids=["removed", "always successful"])
def test_the_command_of_a_probe_must_succeed_without_the_probe(probe: Any) -> None:
    with prepared_episode(shop_problem(Probed)) as episode, agent_of(episode) as agent:
        assert complaints(episode, "declared-probes") == []
        agent.patch("deployments", "api", probed(probe), SHOP)
        episode.cluster.wait(60)
        assert complaints(episode, "declared-probes") == []
        for pod in agent.list("pods", SHOP):
            if pod["metadata"]["name"].startswith("api-"):
                agent.exec(pod["metadata"]["name"], ["rm", "/tmp/ready"], SHOP)
        (complaint,) = complaints(episode, "declared-probes")
        assert "readiness probe fails" in complaint
