"""The same seed and the same actions give the same world."""

from __future__ import annotations

import hashlib

import orjson

from srearena.cluster.embedded.machine.machine import NodeSpec
from tests.kubelet.harness import Lab


def story(seed: int) -> str:
    lab = Lab(NodeSpec("one"), NodeSpec("two"), seed=seed)
    lab.run("good", ports=[{"containerPort": 80}], readinessProbe={"httpGet": {"port": 80}})
    lab.run("crash", "busybox:1.36", command=["sh", "-c", "echo $RANDOM; date; exit 1"])
    lab.run("bad", "nginx:nope")
    lab.pass_time(100)
    lab.delete("good")
    lab.nodes.access.reboot("one", 20)
    lab.pass_time(100)
    digest = hashlib.sha256()
    for resource in lab.world.store.resources():
        for obj in lab.world.store.objects(resource):
            digest.update(orjson.dumps(obj, option=orjson.OPT_SORT_KEYS))
    digest.update(lab.log("crash").encode())
    return digest.hexdigest()


def test_two_runs_with_one_seed_are_equal_and_another_seed_differs() -> None:
    assert story(7) == story(7)
    assert story(7) != story(8)
