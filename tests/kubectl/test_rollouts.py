"""Rollouts: how many pods at a time, when they get stuck, and how to pause, undo and restart them."""

from __future__ import annotations

from typing import Any

import pytest

from .operator import Operator


def deployment(image: str = "nginx:1.27", replicas: int = 4, **spec: Any) -> dict[str, Any]:
    probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 8, "periodSeconds": 5}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "terminationGracePeriodSeconds": 5,
                    "containers": [{"name": "web", "image": image, "readinessProbe": probe}],
                },
            },
            **spec,
        },
    }


def counts(operator: Operator) -> tuple[int, int, int]:
    """(all, available, updated) pods of the Deployment as its ReplicaSets have them."""
    status = operator.get("deployment", "web")["status"]
    return status.get("replicas", 0), status.get("availableReplicas", 0), status.get("updatedReplicas", 0)


@pytest.mark.parametrize(
    ("surge", "unavailable", "most", "least"),
    [("25%", "25%", 10 + 3, 10 - 2), (0, 1, 10, 9), (1, 0, 11, 10), ("100%", 0, 20, 10), (0, "50%", 10, 5)],
)
def test_a_rollout_never_has_too_many_nor_too_few_pods(
    operator: Operator, surge: int | str, unavailable: int | str, most: int, least: int
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    operator.apply(deployment(replicas=10, strategy=strategy))
    operator.wait(40)
    assert counts(operator) == (10, 10, 10)
    seen = watched_rollout(operator, 300)
    assert max(wanted for wanted, _ in seen) == most
    assert min(available for _, available in seen) == least
    assert seen[-1] == (10, 10)
    assert counts(operator) == (10, 10, 10)
    assert {pod["spec"]["containers"][0]["image"] for pod in operator.pods("app=web")} == {"nginx:1.28"}


def watched_rollout(operator: Operator, seconds: float) -> list[tuple[int, int]]:
    """(wanted, available) pods of all ReplicaSets together, as a second terminal sees them change."""
    fields = ("metadata.name", "spec.replicas", "status.availableReplicas", "metadata.annotations.end")
    template = ",".join(f"{{.{field}}}" for field in fields) + '{"\\n"}'
    sets: dict[str, tuple[int, int]] = {}
    seen: list[tuple[int, int]] = []
    with operator.running("get", "rs", "-l", "app=web", "--watch", "-o", f"jsonpath={template}") as lines:
        old, wanted, available, _ = lines.readline().strip().split(",")
        sets[old] = (int(wanted), int(available))
        operator.kubectl("set", "image", "deployment/web", "web=nginx:1.28")
        operator.wait(seconds)
        operator.kubectl("annotate", "rs", "-l", "app=web", "end=here")
        ended: set[str] = set()
        while len(ended) < 2:
            name, wanted, available, end = lines.readline().strip().split(",")
            sets[name] = (int(wanted), int(available or 0))
            if end:
                ended.add(name)
            seen.append((sum(wanted for wanted, _ in sets.values()), sum(ready for _, ready in sets.values())))
    return seen


def test_recreate_ends_all_before_it_starts_any(operator: Operator) -> None:
    operator.apply(deployment(strategy={"type": "Recreate"}))
    operator.wait(40)
    operator.kubectl("set", "image", "deployment/web", "web=nginx:1.28")
    images: list[set[str]] = []
    for _ in range(20):
        operator.wait(1)
        alive = operator.get("pods", "-l", "app=web", "--field-selector=status.phase!=Succeeded")["items"]
        images.append({pod["spec"]["containers"][0]["image"] for pod in alive})
    assert {"nginx:1.27", "nginx:1.28"} not in images
    assert images[-1] == {"nginx:1.28"}


def test_a_rollout_that_makes_no_progress_says_so_and_recovers_when_undone(operator: Operator) -> None:
    operator.apply(deployment(progressDeadlineSeconds=60))
    operator.wait(40)
    operator.kubectl("set", "image", "deployment/web", "web=nginx:1.99")
    operator.wait(30)
    waiting = operator.run("rollout", "status", "deployment/web", "--watch=false").out
    assert waiting == 'Waiting for deployment "web" rollout to finish: 2 out of 4 new replicas have been updated...\n'
    operator.wait(60)
    progressing = operator.condition("Progressing", "deployment", "web")
    broken = operator.get("rs", "-l", "app=web", "--sort-by=.metadata.creationTimestamp")["items"][-1]
    assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert progressing["message"] == f'ReplicaSet "{broken["metadata"]["name"]}" has timed out progressing.'
    assert operator.fails("rollout", "status", "deployment/web") == (
        'error: deployment "web" exceeded its progress deadline\n'
    )
    assert counts(operator)[1] == 3, "a quarter may be missing, no more"
    assert operator.condition("Available", "deployment", "web")["status"] == "True"
    assert operator.kubectl("rollout", "undo", "deployment/web") == "deployment.apps/web rolled back\n"
    operator.wait(40)
    assert operator.kubectl("rollout", "status", "deployment/web") == 'deployment "web" successfully rolled out\n'
    progressing = operator.condition("Progressing", "deployment", "web")
    assert (progressing["status"], progressing["reason"]) == ("True", "NewReplicaSetAvailable")
    assert counts(operator) == (4, 4, 4)


def test_a_paused_rollout_takes_changes_and_starts_none(operator: Operator) -> None:
    operator.apply(deployment())
    operator.wait(40)
    before = {p["metadata"]["name"] for p in operator.pods("app=web")}
    operator.kubectl("rollout", "pause", "deployment/web")
    operator.kubectl("set", "image", "deployment/web", "web=nginx:1.28")
    operator.kubectl("set", "env", "deployment/web", "COLOUR=blue")
    operator.wait(60)
    assert {p["metadata"]["name"] for p in operator.pods("app=web")} == before
    paused = operator.condition("Progressing", "deployment", "web")
    assert (paused["status"], paused["reason"]) == ("Unknown", "DeploymentPaused")
    assert paused["message"] == "Deployment is paused"
    assert "can't restart paused deployment (run rollout resume first)" in operator.fails(
        "rollout", "restart", "deployment/web"
    )
    assert "cannot rollback a paused deployment; resume it first" in operator.fails(
        "rollout", "undo", "deployment/web", "--to-revision=1"
    )
    operator.kubectl("scale", "deployment/web", "--replicas=6")
    operator.wait(20)
    assert counts(operator)[:2] == (6, 6), "scaling goes on while paused"
    operator.kubectl("rollout", "resume", "deployment/web")
    operator.wait(60)
    assert counts(operator) == (6, 6, 6)
    assert len(operator.get("rs", "-l", "app=web")["items"]) == 2, "one rollout for both changes"


def test_history_names_each_revision_and_undo_goes_back_to_any(operator: Operator) -> None:
    operator.apply(deployment(replicas=2))
    operator.kubectl("annotate", "deployment/web", "kubernetes.io/change-cause=first")
    operator.wait(40)
    for image, cause in (("nginx:1.28", "second"), ("nginx:1.29", "third")):
        operator.kubectl("set", "image", "deployment/web", f"web={image}")
        operator.kubectl("annotate", "deployment/web", f"kubernetes.io/change-cause={cause}", "--overwrite")
        operator.wait(40)
    history = operator.kubectl("rollout", "history", "deployment/web").split("\n")
    assert [line.split() for line in history[2:5]] == [["1", "first"], ["2", "second"], ["3", "third"]]
    assert "nginx:1.28" in operator.kubectl("rollout", "history", "deployment/web", "--revision=2")
    operator.kubectl("rollout", "undo", "deployment/web", "--to-revision=1")
    operator.wait(40)
    assert operator.path("{.spec.template.spec.containers[0].image}", "deployment", "web") == "nginx:1.27"
    history = operator.kubectl("rollout", "history", "deployment/web").split("\n")
    assert [line.split()[0] for line in history[2:5]] == ["2", "3", "4"]
    assert "unable to find specified revision 1" in operator.fails(
        "rollout", "undo", "deployment/web", "--to-revision=1"
    )


def test_restart_replaces_every_pod_once(operator: Operator) -> None:
    operator.apply(deployment())
    operator.wait(40)
    before = {p["metadata"]["name"] for p in operator.pods("app=web")}
    assert operator.kubectl("rollout", "restart", "deployment/web") == "deployment.apps/web restarted\n"
    operator.wait(60)
    after = {p["metadata"]["name"] for p in operator.pods("app=web")}
    assert len(after) == 4
    assert not before & after


def test_only_so_many_old_replica_sets_are_kept(operator: Operator) -> None:
    operator.apply(deployment(replicas=1, revisionHistoryLimit=1))
    operator.wait(30)
    for image in ("nginx:1.28", "nginx:1.29", "nginx:1.26"):
        operator.kubectl("set", "image", "deployment/web", f"web={image}")
        operator.wait(40)
    assert len(operator.get("rs", "-l", "app=web")["items"]) == 2


def test_a_new_pod_must_stay_well_before_it_counts(operator: Operator) -> None:
    operator.apply(deployment(replicas=2, minReadySeconds=30))
    operator.wait(25)
    assert operator.row("deployment", "web") | {"AGE": ""} == {
        "NAME": "web",
        "READY": "2/2",
        "UP-TO-DATE": "2",
        "AVAILABLE": "0",
        "AGE": "",
    }
    operator.wait(30)
    assert operator.row("deployment", "web")["AVAILABLE"] == "2"


def test_scaling_tells_and_rolls_nothing(operator: Operator) -> None:
    operator.apply(deployment(replicas=1))
    operator.wait(30)
    [replica_set] = operator.get("rs", "-l", "app=web")["items"]
    name = replica_set["metadata"]["name"]
    operator.kubectl("scale", "deployment/web", "--replicas=3")
    operator.wait(30)
    operator.kubectl("scale", "deployment/web", "--replicas=0")
    operator.wait(30)
    assert [message for _, _, message in operator.events("web")] == [
        f"Scaled up replica set {name} from 0 to 1",
        f"Scaled up replica set {name} from 1 to 3",
        f"Scaled down replica set {name} from 3 to 0",
    ]
    assert operator.reasons("web") == ["ScalingReplicaSet"] * 3
    assert operator.pods("app=web") == []
    assert operator.fails("scale", "deployment/web", "--current-replicas=5", "--replicas=2").startswith(
        "error: Expected replicas to be 5, was 0"
    )
