"""Containers that end: exit codes, back-off, restart policies, last words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.kubelet.backoff import BackOff
from tests.kubelet.harness import Lab


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def test_a_crashing_container_goes_from_error_to_crash_loop(lab: Lab) -> None:
    pod = lab.run(image="busybox:1.36", command=shell("echo hi; exit 3"))
    lab.pass_time(8)
    state = lab.container()["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (3, "Error")
    assert lab.status()["phase"] == "Running"
    lab.pass_time(70)
    uid = pod["metadata"]["uid"]
    assert lab.waiting() == (
        "CrashLoopBackOff",
        f"back-off 40s restarting failed container=main pod=web_default({uid})",
    )
    assert lab.container()["lastState"]["terminated"]["exitCode"] == 3
    assert lab.container()["restartCount"] >= 3
    assert lab.messages(reason="BackOff") == [f"Back-off restarting failed container main in pod web_default({uid})"]
    assert lab.log() == "hi\n"


def test_the_delay_doubles_up_to_five_minutes(lab: Lab) -> None:
    lab.run(image="busybox:1.36", command=["false"])
    starts: list[float] = []

    def watch(change: object) -> None:
        count = lab.container()["restartCount"] if lab.status().get("containerStatuses") else 0
        if count > len(starts):
            starts.append(lab.clock.now)

    lab.world.on_change("pods", watch)
    lab.pass_time(3600)
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    for gap, least in zip(gaps, (10, 20, 40, 80, 160, 300, 300), strict=False):
        assert least <= gap <= least + 18, gaps


def test_a_container_that_ran_well_starts_over_with_a_short_delay(lab: Lab) -> None:
    lab.run(image="busybox:1.36", command=shell("sleep 700; exit 1"))
    lab.pass_time(2000)
    assert lab.container()["restartCount"] == 2
    assert "running" in lab.container()["state"]


@pytest.mark.parametrize(
    ("policy", "script", "phase", "restarts"),
    [
        ("Never", "exit 0", "Succeeded", False),
        ("Never", "exit 2", "Failed", False),
        ("OnFailure", "exit 0", "Succeeded", False),
        ("OnFailure", "exit 2", "Running", True),
        ("Always", "exit 0", "Running", True),
    ],
)
def test_restart_policies(lab: Lab, policy: str, script: str, phase: str, restarts: bool) -> None:
    lab.run(image="busybox:1.36", command=shell(script), spec={"restartPolicy": policy})
    lab.pass_time(60)
    assert lab.status()["phase"] == phase
    assert (lab.container()["restartCount"] > 0) is restarts


def test_a_pod_that_succeeds_in_the_end_keeps_only_its_last_run(lab: Lab) -> None:
    lab.run(
        spec={"restartPolicy": "OnFailure", "volumes": [{"name": "d", "emptyDir": {}}]},
        image="busybox:1.36",
        command=shell("test -e /d/again && exit 0; touch /d/again; exit 6"),
        volumeMounts=[{"name": "d", "mountPath": "/d"}],
    )
    lab.pass_time(60)
    assert lab.status()["phase"] == "Succeeded"
    assert (lab.container()["restartCount"], lab.container()["lastState"]) == (1, {})


def test_a_finished_pod_says_so_in_its_conditions(lab: Lab) -> None:
    lab.run(image="busybox:1.36", command=["true"], spec={"restartPolicy": "Never"})
    lab.pass_time(6)
    rows = {row["type"]: (row["status"], row.get("reason", "")) for row in lab.status()["conditions"]}
    assert rows == {
        "PodReadyToStartContainers": ("False", ""),
        "Initialized": ("True", "PodCompleted"),
        "Ready": ("False", "PodCompleted"),
        "ContainersReady": ("False", "PodCompleted"),
        "PodScheduled": ("True", ""),
    }
    assert lab.container()["state"]["terminated"]["reason"] == "Completed"
    assert lab.log() == ""


def test_a_command_that_does_not_exist_cannot_be_run(lab: Lab) -> None:
    lab.run(image="busybox:1.36", command=["nonsense", "--flag"])
    lab.pass_time(4)
    reason, message = lab.waiting()
    assert reason == "RunContainerError"
    assert message.endswith('exec: "nonsense": executable file not found in $PATH')
    last = lab.container()["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (128, "StartError")
    assert last["startedAt"] == "1970-01-01T00:00:00Z"
    assert f"Error: {message}" in lab.messages(reason="Failed")
    lab.pass_time(30)
    assert lab.waiting()[0] == "CrashLoopBackOff"


def test_too_much_memory_is_answered_by_the_kernel(lab: Lab) -> None:
    lab.run(resources={"limits": {"memory": "64Mi"}})
    lab.pass_time(6)
    sandbox = lab.nodes.sandbox("default", "web")
    assert sandbox is not None
    record = sandbox.latest("main")
    assert record is not None and record.container is not None and record.container.main is not None
    record.container.main.set_memory(100 * 1024**2)
    lab.pass_time(3)
    ended = lab.container()["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")
    assert lab.container()["restartCount"] == 1


@pytest.mark.parametrize(
    ("script", "policy", "message"),
    [
        ("echo because > /dev/termination-log; exit 1", "File", "because\n"),
        ("echo said; exit 1", "FallbackToLogsOnError", "said\n"),
        ("echo said; exit 0", "FallbackToLogsOnError", None),
        ("echo said; exit 1", "File", None),
    ],
)
def test_last_words(lab: Lab, script: str, policy: str, message: str | None) -> None:
    lab.run(
        image="busybox:1.36",
        command=shell(script),
        terminationMessagePolicy=policy,
        spec={"restartPolicy": "Never"},
    )
    lab.pass_time(6)
    assert lab.container()["state"]["terminated"].get("message") == message


def test_a_pod_past_its_deadline_is_ended(lab: Lab) -> None:
    lab.run(spec={"activeDeadlineSeconds": 20})
    lab.pass_time(15)
    assert lab.status()["phase"] == "Running"
    lab.pass_time(10)
    status = lab.status()
    message = "Pod was active on the node longer than the specified deadline"
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "DeadlineExceeded", message)


@given(st.lists(st.floats(0, 2000), max_size=30))
def test_a_delay_never_leaves_its_bounds(pauses: list[float]) -> None:
    clock = Clock(0.0)
    back_off = BackOff(clock)
    for pause in pauses:
        clock.advance(pause)
        back_off.next("key", clock.now)
        assert 10 <= back_off.seconds("key") <= 300
        assert back_off.waits("key")
    clock.advance(301)
    assert not back_off.waits("key")
