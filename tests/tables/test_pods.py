"""What `kubectl get pods` says of a pod in each of the states operators meet."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.api.tables import table_for

from .shown import NOW, ago, meta, shown

RUNNING = {"running": {"startedAt": ago(200)}}


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


def ended(code: int, reason: str = "", **more: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, **({"reason": reason} if reason else {}), **more}}


def container(state: dict[str, Any], *, name: str = "app", ready: bool = False, **more: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "ready": ready, "restartCount": 0, **more}


def pod(
    *statuses: dict[str, Any],
    phase: str = "Running",
    init: tuple[dict[str, Any], ...] = (),
    init_spec: tuple[dict[str, Any], ...] | None = None,
    conditions: tuple[dict[str, Any], ...] = (),
    metadata: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    **status: Any,
) -> dict[str, Any]:
    init_containers = [{"name": s["name"]} for s in init] if init_spec is None else list(init_spec)
    return {
        "metadata": metadata or meta(),
        "spec": {
            "containers": [{"name": s["name"]} for s in statuses] or [{"name": "app"}],
            "initContainers": init_containers,
            **(spec or {}),
        },
        "status": {
            "phase": phase,
            "conditions": list(conditions),
            "initContainerStatuses": list(init),
            "containerStatuses": list(statuses),
            **status,
        },
    }


def brief(obj: dict[str, Any]) -> str:
    row = shown("", "pods", obj)
    return f"{row['Ready']} {row['Status']} {row['Restarts']}"


def held(kind: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, **more}


def test_the_columns_are_those_of_kubectl_get_and_wide() -> None:
    table = table_for("", "pods", [pod()], NOW)
    columns = [(c["name"], c["type"], c["format"], c["priority"]) for c in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string", "name", 0),
        ("Ready", "string", "", 0),
        ("Status", "string", "", 0),
        ("Restarts", "string", "", 0),
        ("Age", "string", "", 0),
        ("IP", "string", "", 1),
        ("Node", "string", "", 1),
        ("Nominated Node", "string", "", 1),
        ("Readiness Gates", "string", "", 1),
    ]
    assert all(column["description"] for column in table["columnDefinitions"])


def test_a_running_pod() -> None:
    obj = pod(
        container(RUNNING, ready=True),
        spec={"nodeName": "worker-1", "readinessGates": [{"conditionType": "lb"}, {"conditionType": "dns"}]},
        conditions=(held("Ready"), held("lb")),
        podIP="10.244.1.7",
        podIPs=[{"ip": "10.244.1.7"}, {"ip": "fd00::7"}],
        nominatedNodeName="worker-2",
    )
    assert shown("", "pods", obj) == {
        "Name": "web",
        "Ready": "1/1",
        "Status": "Running",
        "Restarts": "0",
        "Age": "5m",
        "IP": "10.244.1.7",
        "Node": "worker-1",
        "Nominated Node": "worker-2",
        "Readiness Gates": "1/2",
    }


def test_a_pod_nobody_has_scheduled() -> None:
    row = shown("", "pods", pod(phase="Pending"))
    assert (row["Ready"], row["Status"], row["IP"], row["Node"]) == ("0/1", "Pending", "<none>", "<none>")
    assert (row["Nominated Node"], row["Readiness Gates"]) == ("<none>", "<none>")


@pytest.mark.parametrize(
    ("obj", "line"),
    [
        (pod(container(waiting("ContainerCreating")), phase="Pending"), "0/1 ContainerCreating 0"),
        (pod(container(waiting("ImagePullBackOff")), phase="Pending"), "0/1 ImagePullBackOff 0"),
        (pod(container(ended(1, "Error"))), "0/1 Error 0"),
        (pod(container(ended(137, "OOMKilled"))), "0/1 OOMKilled 0"),
        (pod(container(ended(3))), "0/1 ExitCode:3 0"),
        (pod(container(ended(0, signal=9))), "0/1 Signal:9 0"),
        (pod(container(ended(0, "Completed")), phase="Succeeded"), "0/1 Completed 0"),
        (pod(phase="Failed", reason="Evicted"), "0/1 Evicted 0"),
        (
            pod(phase="Pending", conditions=(held("PodScheduled", "False", reason="SchedulingGated"),)),
            "0/1 SchedulingGated 0",
        ),
        # The first container's trouble wins over the last one's.
        (
            pod(container(waiting("CrashLoopBackOff"), name="a"), container(ended(1, "Error"), name="b")),
            "0/2 CrashLoopBackOff 0",
        ),
        # One container done, one at work: the pod counts as running once it is ready, and as not ready before.
        (
            pod(
                container(ended(0, "Completed"), name="a"),
                container(RUNNING, name="b", ready=True),
                conditions=(held("Ready"),),
            ),
            "1/2 Running 0",
        ),
        (
            pod(
                container(ended(0, "Completed"), name="a"),
                container(RUNNING, name="b", ready=True),
                conditions=(held("Ready", "False"),),
            ),
            "1/2 NotReady 0",
        ),
        (pod(container(RUNNING), metadata=meta(deletionTimestamp=ago(1))), "0/1 Terminating 0"),
        (pod(phase="Succeeded", metadata=meta(deletionTimestamp=ago(1))), "0/1 Succeeded 0"),
        (pod(container(RUNNING), reason="NodeLost", metadata=meta(deletionTimestamp=ago(1))), "0/1 Unknown 0"),
    ],
)
def test_the_status_is_the_word_operators_know(obj: dict[str, Any], line: str) -> None:
    assert brief(obj) == line


@pytest.mark.parametrize(
    ("init", "line"),
    [
        ((container(RUNNING, name="i"), container(waiting("PodInitializing"), name="j")), "0/1 Init:0/2 0"),
        ((container(ended(0, "Completed"), name="i"), container(RUNNING, name="j")), "0/1 Init:1/2 0"),
        ((container(waiting("CrashLoopBackOff"), name="i", restartCount=4),), "0/1 Init:CrashLoopBackOff 4"),
        ((container(waiting("ErrImagePull"), name="i"),), "0/1 Init:ErrImagePull 0"),
        ((container(ended(1, "Error"), name="i"),), "0/1 Init:Error 0"),
        ((container(ended(2), name="i"),), "0/1 Init:ExitCode:2 0"),
        ((container(ended(2, signal=15), name="i"),), "0/1 Init:Signal:15 0"),
    ],
)
def test_a_pod_that_is_initializing_says_how_far_it_is(init: tuple[dict[str, Any], ...], line: str) -> None:
    assert brief(pod(container(waiting("PodInitializing")), phase="Pending", init=init)) == line


def test_a_pod_done_initializing_forgets_its_init_restarts() -> None:
    done = container(ended(0, "Completed"), name="i", restartCount=3)
    assert brief(pod(container(RUNNING, ready=True), init=(done,))) == "1/1 Running 0"


def test_sidecars_count_as_containers() -> None:
    spec = ({"name": "proxy", "restartPolicy": "Always"}, {"name": "migrate"})
    proxy = container(RUNNING, name="proxy", ready=True, started=True, restartCount=2)
    migrate = container(RUNNING, name="migrate")
    done = container(ended(0, "Completed"), name="migrate", restartCount=9)
    assert brief(pod(container(waiting("PodInitializing")), init=(proxy, migrate), init_spec=spec)) == "1/2 Init:1/2 2"
    assert brief(pod(container(RUNNING, ready=True), init=(proxy, done), init_spec=spec)) == "2/2 Running 2"
    unstarted = container(RUNNING, name="proxy", started=False)
    assert brief(pod(container(waiting("PodInitializing")), init=(unstarted,), init_spec=spec)) == "0/2 Init:0/2 0"


def test_a_sidecar_in_trouble_names_the_status_while_the_containers_still_count() -> None:
    spec = ({"name": "proxy", "restartPolicy": "Always"},)
    proxy = container(waiting("CrashLoopBackOff"), name="proxy", started=False, restartCount=5)
    obj = pod(container(RUNNING, ready=True), init=(proxy,), init_spec=spec, conditions=(held("Initialized"),))
    assert brief(obj) == "1/2 Init:CrashLoopBackOff 5"


def test_restarts_say_when_the_last_one_was() -> None:
    old = container(RUNNING, name="a", ready=True, restartCount=1, lastState=ended(1, finishedAt=ago(4000)))
    new = container(RUNNING, name="b", ready=True, restartCount=2, lastState=ended(1, finishedAt=ago(20)))
    assert brief(pod(old, new)) == "2/2 Running 3 (20s ago)"
    assert brief(pod(container(RUNNING, ready=True, lastState=ended(1, finishedAt=ago(20))))) == "1/1 Running 0"


def test_finished_pods_are_marked_for_clients_that_hide_them() -> None:
    table = table_for("", "pods", [pod(phase="Succeeded"), pod(phase="Failed"), pod()], NOW)
    done, failed, running = table["rows"]
    assert done["conditions"] == [
        {
            "type": "Completed",
            "status": "True",
            "reason": "Succeeded",
            "message": "The pod has completed successfully.",
        }
    ]
    assert failed["conditions"][0]["reason"] == "Failed"
    assert "conditions" not in running
