"""Init containers and sidecars: order at the start, order at the end, and what hangs on them."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, condition
from tests.kubelet.harness import Lab

BUSYBOX = "busybox:1.36"


def container(name: str, script: str, **more: object) -> Obj:
    return {"name": name, "image": BUSYBOX, "command": ["sh", "-c", script], **more}


def sidecar(name: str, script: str = "trap 'exit 0' TERM; while true; do sleep 1; done", **more: object) -> Obj:
    return container(name, script, restartPolicy="Always", **more)


def test_init_containers_run_one_after_the_other(lab: Lab) -> None:
    inits = [container("first", "sleep 5"), container("second", "sleep 5")]
    lab.run_all("web", [container("main", "sleep 9999")], spec={"initContainers": inits})
    lab.pass_time(4)
    assert "running" in lab.container(container="first")["state"]
    assert lab.waiting(container="second")[0] == "PodInitializing"
    assert lab.waiting()[0] == "PodInitializing"
    found = condition(lab.pod(), "Initialized")
    assert found is not None
    assert (found["reason"], found["message"]) == (
        "ContainersNotInitialized",
        "containers with incomplete status: [first second]",
    )
    lab.pass_time(6)
    assert lab.container(container="first")["ready"]
    assert "running" in lab.container(container="second")["state"]
    lab.pass_time(8)
    assert lab.is_ready()
    assert lab.container(container="second")["state"]["terminated"]["reason"] == "Completed"


def test_a_failing_init_container_loops_and_the_pod_stays_pending(lab: Lab) -> None:
    lab.run_all("web", [container("main", "sleep 9999")], spec={"initContainers": [container("setup", "exit 1")]})
    lab.pass_time(60)
    assert lab.status()["phase"] == "Pending"
    assert lab.waiting(container="setup")[0] == "CrashLoopBackOff"
    assert lab.waiting()[0] == "PodInitializing"


def test_a_failing_init_container_fails_a_pod_that_never_restarts(lab: Lab) -> None:
    spec = {"restartPolicy": "Never", "initContainers": [container("setup", "exit 7")]}
    lab.run_all("web", [container("main", "sleep 9999")], spec=spec)
    lab.pass_time(10)
    assert lab.status()["phase"] == "Failed"
    assert lab.container(container="setup")["state"]["terminated"]["exitCode"] == 7
    assert "waiting" in lab.container()["state"]


def test_a_hanging_init_container_keeps_everybody_waiting(lab: Lab) -> None:
    lab.run_all("web", [container("main", "true")], spec={"initContainers": [container("wait", "sleep 99999")]})
    lab.pass_time(3600)
    assert lab.status()["phase"] == "Pending"
    assert "running" in lab.container(container="wait")["state"]
    assert len(lab.events()) == 4


def test_sidecars_start_before_and_stop_after_the_others(lab: Lab) -> None:
    ended: list[str] = []

    def watch(name: str) -> None:
        sandbox = lab.nodes.sandbox("default", "web")
        assert sandbox is not None
        record = sandbox.latest(name)
        assert record is not None and record.container is not None
        record.container.done.then(lambda: ended.append(name))

    slow_end = "trap 'sleep 3; exit 0' TERM; while true; do sleep 1; done"
    spec = {"initContainers": [sidecar("one"), sidecar("two")]}
    lab.run_all("web", [container("main", slow_end)], spec=spec)
    lab.pass_time(12)
    assert lab.is_ready()
    started = [event["message"] for event in lab.events(reason="Started")]
    assert started == ["Started container one", "Started container two", "Started container main"]
    for name in ("one", "two", "main"):
        watch(name)
    lab.delete()
    lab.pass_time(15)
    assert ended == ["main", "two", "one"]
    assert not lab.exists()


def test_a_sidecar_that_dies_is_restarted_while_the_pod_runs_on(lab: Lab) -> None:
    lab.run_all("web", [container("main", "sleep 9999")], spec={"initContainers": [sidecar("proxy", "sleep 20")]})
    lab.pass_time(30)
    assert lab.container(container="proxy")["restartCount"] == 1
    assert lab.status()["phase"] == "Running"
    assert lab.container()["restartCount"] == 0


def test_the_next_container_waits_for_a_sidecars_startup_probe(lab: Lab) -> None:
    probe = {"exec": {"command": ["cat", "/tmp/up"]}, "periodSeconds": 2, "failureThreshold": 30}
    helper = sidecar("proxy", "sleep 15; touch /tmp/up; sleep 9999", startupProbe=probe)
    lab.run_all("web", [container("main", "sleep 9999")], spec={"initContainers": [helper]})
    lab.pass_time(10)
    assert lab.status()["phase"] == "Pending"
    assert lab.container(container="proxy")["started"] is False
    lab.pass_time(15)
    assert lab.is_ready()


def test_a_job_with_a_sidecar_finishes_when_its_work_is_done(lab: Lab) -> None:
    spec = {"restartPolicy": "Never", "initContainers": [sidecar("proxy")]}
    lab.run_all("web", [container("main", "sleep 3")], spec=spec)
    lab.pass_time(20)
    assert lab.status()["phase"] == "Succeeded"
    assert "terminated" in lab.container(container="proxy")["state"]


def test_an_ephemeral_container_joins_a_running_pod(lab: Lab) -> None:
    lab.run_all("web", [container("main", "sleep 9999")])
    lab.pass_time(6)
    extra = {**container("debug", "echo hello; sleep 9999"), "terminationMessagePath": "/dev/termination-log"}
    lab.client.modify(
        "pods", "default", "web", lambda pod: pod["spec"].update(ephemeralContainers=[extra]), "ephemeralcontainers"
    )
    lab.pass_time(6)
    assert "running" in lab.container(container="debug")["state"]
    assert lab.container()["restartCount"] == 0
    assert lab.events(reason="Started")[-1]["involvedObject"]["fieldPath"] == "spec.ephemeralContainers{debug}"


def test_an_ephemeral_container_can_see_the_processes_of_its_target(lab: Lab) -> None:
    lab.run_all("web", [container("main", "sleep 9999")])
    lab.pass_time(6)
    extra = {**container("debug", "ps; sleep 9999"), "targetContainerName": "main"}
    lab.client.modify(
        "pods", "default", "web", lambda pod: pod["spec"].update(ephemeralContainers=[extra]), "ephemeralcontainers"
    )
    lab.pass_time(6)
    assert "sleep 9999" in lab.log(container="debug")
