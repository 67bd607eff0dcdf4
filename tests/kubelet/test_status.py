"""The status of pods: who may write what into it, and what it says."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, condition
from tests.kubelet.harness import Lab


def test_a_readiness_gate_keeps_the_pod_unready_until_somebody_opens_it(lab: Lab) -> None:
    lab.run(spec={"readinessGates": [{"conditionType": "acme.io/traffic"}]})
    lab.pass_time(8)
    found = condition(lab.pod(), "Ready")
    assert found is not None
    assert (found["status"], found["reason"], found["message"]) == (
        "False",
        "ReadinessGatesNotReady",
        'corresponding condition of pod readiness gate "acme.io/traffic" does not exist.',
    )
    assert condition(lab.pod(), "ContainersReady")["status"] == "True"  # type: ignore[index]

    def gate(status: str) -> None:
        def change(pod: Obj) -> None:
            rows = [row for row in pod["status"]["conditions"] if row["type"] != "acme.io/traffic"]
            pod["status"]["conditions"] = [*rows, {"type": "acme.io/traffic", "status": status}]

        lab.client.modify("pods", "default", "web", change, "status")

    gate("False")
    lab.pass_time(1)
    found = condition(lab.pod(), "Ready")
    assert found is not None
    assert found["message"] == 'the status of pod readiness gate "acme.io/traffic" is not "True", but False'
    gate("True")
    lab.pass_time(1)
    assert lab.is_ready()
    assert condition(lab.pod(), "acme.io/traffic") is not None


def test_what_somebody_else_writes_over_the_status_is_put_right(lab: Lab) -> None:
    lab.run()
    lab.pass_time(8)

    def spoil(pod: Obj) -> None:
        for row in pod["status"]["conditions"]:
            if row["type"] == "Ready":
                row["status"] = "False"

    lab.client.modify("pods", "default", "web", spoil, "status")
    assert not lab.is_ready()
    lab.pass_time(1)
    assert lab.is_ready()


def test_a_node_that_comes_back_makes_its_pods_ready_again(lab: Lab) -> None:
    lab.run()
    lab.pass_time(8)
    lab.nodes.access.partition("worker")

    def mark(pod: Obj) -> None:
        for row in pod["status"]["conditions"]:
            if row["type"] == "Ready":
                row.update(status="False", reason="NodeNotReady")

    lab.client.modify("pods", "default", "web", mark, "status")
    lab.pass_time(60)
    assert not lab.is_ready()
    lab.nodes.access.heal("worker")
    lab.pass_time(2)
    assert lab.is_ready()


def test_times_move_only_when_a_condition_does(lab: Lab) -> None:
    lab.run(ports=[{"containerPort": 80}], readinessProbe={"httpGet": {"port": 80}, "initialDelaySeconds": 20})
    lab.pass_time(10)
    before = {row["type"]: row["lastTransitionTime"] for row in lab.status()["conditions"]}
    lab.pass_time(30)
    after = {row["type"]: row["lastTransitionTime"] for row in lab.status()["conditions"]}
    moved = {kind for kind in before if before[kind] != after[kind]}
    assert moved == {"Ready", "ContainersReady"}


def test_generations_are_observed(lab: Lab) -> None:
    lab.run()
    lab.pass_time(8)
    assert lab.status()["observedGeneration"] == 1
    lab.client.modify(
        "pods", "default", "web", lambda pod: pod["spec"]["containers"][0].update(image="acme/server:1.1")
    )
    lab.pass_time(8)
    status = lab.status()
    assert status["observedGeneration"] == 2
    assert {row["observedGeneration"] for row in status["conditions"]} == {2}
    assert lab.container()["image"] == "docker.io/acme/server:1.1"
    assert lab.messages(reason="Killing") == ["Container main definition changed, will be restarted"]
    assert lab.container()["restartCount"] == 1


def test_resources_and_mounts_are_shown(lab: Lab) -> None:
    lab.config_map("there", {"k": "v"})
    lab.run(
        resources={"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}},
        volumeMounts=[{"name": "v", "mountPath": "/v", "readOnly": True}],
        spec={"volumes": [{"name": "v", "configMap": {"name": "there"}}]},
    )
    lab.pass_time(8)
    shown = lab.container()
    assert shown["allocatedResources"] == {"cpu": "100m", "memory": "64Mi"}
    assert shown["resources"]["limits"] == {"memory": "64Mi"}
    assert shown["volumeMounts"] == [
        {"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "Disabled"}
    ]
    assert shown["user"] == {"linux": {"uid": 0, "gid": 0, "supplementalGroups": [0]}}
    assert lab.status()["qosClass"] == "Burstable"


def test_containers_are_listed_by_name(lab: Lab) -> None:
    lab.run_all("web", [{"name": "zoo", "image": "nginx:1.27"}, {"name": "ant", "image": "redis:7"}])
    lab.pass_time(10)
    assert [row["name"] for row in lab.status()["containerStatuses"]] == ["ant", "zoo"]
