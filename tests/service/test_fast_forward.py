"""Requests that need time in the cluster: time flies to the instant of the answer, and two runs are the same."""

from __future__ import annotations

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.service.errors import Unreachable
from srearena.service.kubernetes import Kubernetes

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "shell", "namespace": "default"},
    "spec": {"containers": [{"name": "shell", "image": "busybox:1.36", "command": ["sleep", "36000"]}]},
}
STEPS = "for i in 1 2 3; do date +%s.%N; sleep 1.5; done; cat"


def standing_still(in_process: bool = True) -> Cluster:
    return start_embedded(
        nodes=1, seed=3, start=1_700_000_000.0, behind=600, secret="of this test", in_process=in_process
    )


def lived(in_process: bool) -> tuple[str, str, str]:
    with standing_still(in_process) as cluster, Kubernetes.of(cluster) as api:
        api.create(POD)
        cluster.wait(30)
        before = api.now()
        printed = api.exec("shell", ["sh", "-c", STEPS], "default", stdin="the end").output
        return before, printed, api.now()


def test_two_runs_are_the_same_to_the_nanosecond_in_whichever_process() -> None:
    first = lived(in_process=True)
    assert first[1].endswith("the end") and first[0] != first[2]
    assert lived(in_process=True) == first
    assert lived(in_process=False) == first


def test_time_stands_still_again_after_the_answer() -> None:
    with standing_still() as cluster, Kubernetes.of(cluster) as api:
        api.create(POD)
        cluster.wait(30)
        began = float(api.exec("shell", ["date", "+%s.%N"], "default").output)
        api.exec("shell", ["sleep", "20"], "default")
        ended = float(api.exec("shell", ["date", "+%s.%N"], "default").output)
    assert 20 <= ended - began < 20.5


def test_more_input_than_a_pipe_holds_finds_its_way() -> None:
    with standing_still() as cluster, Kubernetes.of(cluster) as api:
        api.create(POD)
        cluster.wait(30)
        text = "x" * 300_000
        output = api.exec("shell", ["sh", "-c", "sleep 5; wc -c; sleep 5"], "default", stdin=text).output
    assert output.strip() == "300000"


def test_who_waits_in_vain_gives_up_on_the_clusters_time() -> None:
    with standing_still() as cluster, Kubernetes.of(cluster) as api:
        api.create(POD)
        cluster.wait(30)
        with pytest.raises(Unreachable), cluster.fast_forward(30) as skip:
            api.exec("shell", ["sleep", "1000"], "default", timeout=30)
        assert skip.skipped_seconds == pytest.approx(30, abs=1)


def test_time_does_not_fly_for_those_who_are_in_no_hurry() -> None:
    with standing_still() as cluster, Kubernetes(cluster.kubeconfig) as patient, Kubernetes.of(cluster) as api:
        api.create(POD)
        cluster.wait(30)
        before = api.now()
        with pytest.raises(Unreachable):
            patient.exec("shell", ["sleep", "1"], "default", timeout=0.5)
        assert api.now() == before
