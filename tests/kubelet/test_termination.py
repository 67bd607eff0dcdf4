"""Taking pods down: hooks, grace, force, and what is said on the way."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from tests.kubelet.harness import Lab

BUSYBOX = "busybox:1.36"
STUBBORN = ["sh", "-c", "trap '' TERM; while true; do sleep 1; done"]


def gone_after(lab: Lab, name: str = "web", limit: float = 120) -> float:
    begun = lab.clock.now
    while lab.exists(name):
        lab.pass_time(0.25)
        assert lab.clock.now - begun < limit, "the pod does not go"
    return lab.clock.now - begun


def final_state(lab: Lab) -> list[Obj]:
    """Every state the pod shows from now on."""
    shown: list[Obj] = []
    lab.world.on_change("pods", lambda change: shown.append(change.new["status"]))
    return shown


def test_a_polite_container_goes_at_once(lab: Lab) -> None:
    lab.run()
    lab.pass_time(6)
    lab.delete()
    assert gone_after(lab) < 3


def test_a_stubborn_one_is_killed_after_its_grace(lab: Lab) -> None:
    lab.run(image=BUSYBOX, command=STUBBORN, spec={"terminationGracePeriodSeconds": 20})
    lab.pass_time(6)
    shown = final_state(lab)
    lab.delete()
    assert 20 <= gone_after(lab) < 23
    ended = shown[-1]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "Error")
    assert shown[-1]["phase"] == "Failed"


def test_a_container_that_dies_of_the_signal_says_143(lab: Lab) -> None:
    script = "trap 'exit 143' TERM; while true; do sleep 1; done"
    lab.run(image=BUSYBOX, command=["sh", "-c", script])
    lab.pass_time(6)
    shown = final_state(lab)
    lab.delete()
    gone_after(lab)
    assert shown[-1]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143


def test_the_pre_stop_hook_runs_first_and_counts(lab: Lab) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo leaving > /proc/1/fd/1; sleep 5"]}}}
    lab.run(image=BUSYBOX, command=STUBBORN, lifecycle=hook, spec={"terminationGracePeriodSeconds": 12})
    lab.pass_time(6)
    lab.delete()
    lab.pass_time(3)
    assert lab.log() == "leaving\n"
    assert 9 <= gone_after(lab) < 12


def test_a_failing_pre_stop_hook_is_reported_and_passed_over(lab: Lab) -> None:
    lab.run(lifecycle={"preStop": {"exec": {"command": ["false"]}}})
    lab.pass_time(6)
    lab.delete()
    assert gone_after(lab) < 3
    assert lab.messages(reason="FailedPreStopHook") == ["PreStopHook failed"]


def test_a_sleeping_hook_delays_the_signal(lab: Lab) -> None:
    lab.run(lifecycle={"preStop": {"sleep": {"seconds": 7}}})
    lab.pass_time(6)
    lab.delete()
    assert 7 <= gone_after(lab) < 10


def test_a_failing_post_start_hook_kills_the_container(lab: Lab) -> None:
    lab.run(lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "exit 3"]}}})
    lab.pass_time(5)
    assert lab.messages(reason="FailedPostStartHook") == ["PostStartHook failed"]
    assert "FailedPostStartHook" in lab.messages(reason="Killing")
    assert lab.waiting()[0] in ("PostStartHookError", "CrashLoopBackOff")


def test_a_failed_post_start_hook_is_told_in_the_status(lab: Lab) -> None:
    lab.run(lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "exit 3"]}}})
    messages = set()
    for _ in range(100):
        lab.pass_time(0.1)
        state = lab.container()["state"] if lab.status().get("containerStatuses") else {}
        messages.add((state.get("waiting", {}).get("reason"), state.get("waiting", {}).get("message")))
    uid = lab.pod()["metadata"]["uid"]
    text = (
        f'Exec lifecycle hook ([sh -c exit 3]) for Container "main" in Pod "web_default({uid})" failed - '
        "error: command 'sh -c exit 3' exited with 3: , message: \"\""
    )
    assert ("PostStartHookError", text) in messages


def test_a_second_delete_with_less_grace_hurries(lab: Lab) -> None:
    lab.run(image=BUSYBOX, command=STUBBORN, spec={"terminationGracePeriodSeconds": 600})
    lab.pass_time(6)
    lab.delete()
    lab.pass_time(10)
    assert lab.exists()
    lab.delete(grace=3)
    assert gone_after(lab) < 7


def test_a_forced_delete_removes_the_object_now_and_the_container_later(lab: Lab) -> None:
    lab.run(image=BUSYBOX, command=STUBBORN)
    lab.pass_time(6)
    lab.delete(grace=0)
    assert not lab.exists()
    machine = lab.kubelet.machine
    lab.pass_time(5)
    assert any(True for sandbox in machine.sandboxes.values() for _ in sandbox.running())
    lab.pass_time(30)
    assert not machine.sandboxes
    assert not lab.kubelet.workers


def test_a_pod_of_the_same_name_can_follow_at_once(lab: Lab) -> None:
    first = lab.run(image=BUSYBOX, command=STUBBORN)
    lab.pass_time(6)
    lab.delete(grace=0)
    second = lab.run()
    lab.pass_time(40)
    assert lab.pod()["metadata"]["uid"] == second["metadata"]["uid"] != first["metadata"]["uid"]
    assert lab.is_ready()


def test_a_pod_that_waits_for_a_volume_goes_at_once(lab: Lab) -> None:
    lab.run(
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
        spec={"volumes": [{"name": "data", "configMap": {"name": "missing"}}]},
    )
    lab.pass_time(60)
    lab.delete()
    assert gone_after(lab) < 2


def test_a_pod_that_waits_for_its_image_goes_at_once(lab: Lab) -> None:
    lab.run(image="nginx:nope")
    lab.pass_time(60)
    lab.delete()
    assert gone_after(lab) < 2


def test_a_finalizer_keeps_the_object_but_not_the_container(lab: Lab) -> None:
    lab.run()
    lab.client.modify("pods", "default", "web", lambda pod: pod["metadata"].update(finalizers=["acme.io/hold"]))
    lab.pass_time(6)
    lab.delete()
    lab.pass_time(60)
    assert lab.exists()
    assert lab.status()["phase"] == "Succeeded"
    lab.client.modify("pods", "default", "web", lambda pod: pod["metadata"].pop("finalizers"))
    lab.pass_time(2)
    assert not lab.exists()
    assert not lab.kubelet.workers


def test_a_finished_pod_keeps_its_log_until_it_is_deleted(lab: Lab) -> None:
    lab.run(image=BUSYBOX, command=["echo", "done"], spec={"restartPolicy": "Never"})
    lab.pass_time(3600)
    record = lab.nodes.agent.record(lab.pod(), "main")
    assert record is not None
    assert record.log.text() == "done\n"
    lab.delete()
    lab.pass_time(1)
    assert not lab.exists()
    assert not lab.kubelet.machine.sandboxes
