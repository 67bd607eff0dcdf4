"""StatefulSets: one after the other, each with a name and a volume of its own."""

from __future__ import annotations

from typing import Any

from .operator import Operator


def stateful_set(image: str = "nginx:1.27", replicas: int = 3, **spec: Any) -> dict[str, Any]:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    container = {
        "name": "db",
        "image": image,
        "ports": [{"containerPort": 80}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 2},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"terminationGracePeriodSeconds": 2, "containers": [container]},
            },
            "volumeClaimTemplates": [claim],
            **spec,
        },
    }


SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: db}
spec:
  clusterIP: None
  selector: {app: db}
  ports: [{port: 80}]
"""


def names(operator: Operator) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in operator.pods("app=db"))


def images(operator: Operator) -> dict[str, str]:
    return {
        pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"].partition(":")[2]
        for pod in operator.pods("app=db")
    }


def test_pods_start_in_order_and_end_in_reverse(operator: Operator) -> None:
    operator.apply(SERVICE, stateful_set())
    seen: list[list[str]] = []
    for _ in range(30):
        operator.wait(2)
        seen.append(names(operator))
    assert [pods for pods in seen if pods] == sorted((pods for pods in seen if pods), key=len)
    assert seen[-1] == ["db-0", "db-1", "db-2"]
    assert operator.row("statefulset", "db")["READY"] == "3/3"
    creation_times = {pod["metadata"]["name"]: pod["metadata"]["creationTimestamp"] for pod in operator.pods("app=db")}
    assert creation_times["db-0"] < creation_times["db-1"] < creation_times["db-2"]
    operator.kubectl("scale", "statefulset", "db", "--replicas=1")
    seen = []
    for _ in range(20):
        operator.wait(1)
        seen.append(names(operator))
    assert ["db-0", "db-2"] not in seen
    assert seen[-1] == ["db-0"]


def test_one_that_is_not_well_holds_up_the_rest(operator: Operator) -> None:
    operator.apply(SERVICE, stateful_set("nginx:1.99"))
    operator.wait(60)
    assert names(operator) == ["db-0"]
    assert operator.row("statefulset", "db")["READY"] == "0/3"
    operator.kubectl("set", "image", "statefulset/db", "db=nginx:1.27")
    operator.wait(60)
    assert images(operator) == {"db-0": "1.99"}, "the broken pod is not replaced by itself"
    operator.kubectl("delete", "pod", "db-0")
    operator.wait(60)
    assert operator.row("statefulset", "db")["READY"] == "3/3"


def test_each_pod_keeps_its_volume_whatever_becomes_of_it(operator: Operator) -> None:
    operator.apply(SERVICE, stateful_set(replicas=2))
    operator.wait(60)
    claims = operator.get("pvc", "-l", "app=db")["items"]
    assert [claim["metadata"]["name"] for claim in claims] == ["data-db-0", "data-db-1"]
    assert ("Normal", "SuccessfulCreate", "create Claim data-db-0 Pod db-0 in StatefulSet db success") in (
        operator.events("db")
    )
    assert ("Normal", "SuccessfulCreate", "create Pod db-0 in StatefulSet db successful") in operator.events("db")
    operator.kubectl("exec", "db-1", "--", "sh", "-c", "echo mine > /data/file")
    node = operator.path("{.spec.nodeName}", "pod", "db-1")
    operator.kubectl("delete", "pod", "db-1")
    operator.wait(30)
    assert operator.kubectl("exec", "db-1", "--", "cat", "/data/file") == "mine\n"
    assert operator.path("{.spec.nodeName}", "pod", "db-1") == node
    operator.kubectl("scale", "statefulset", "db", "--replicas=1")
    operator.wait(30)
    assert len(operator.get("pvc", "-l", "app=db")["items"]) == 2
    operator.kubectl("scale", "statefulset", "db", "--replicas=2")
    operator.wait(30)
    assert operator.kubectl("exec", "db-1", "--", "cat", "/data/file") == "mine\n"
    operator.kubectl("delete", "statefulset", "db")
    operator.wait(30)
    assert len(operator.get("pvc", "-l", "app=db")["items"]) == 2


def test_claims_go_when_the_set_says_so(operator: Operator) -> None:
    operator.apply(
        SERVICE,
        stateful_set(
            replicas=2, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"}
        ),
    )
    operator.wait(60)
    operator.kubectl("scale", "statefulset", "db", "--replicas=1")
    operator.wait(40)
    assert [claim["metadata"]["name"] for claim in operator.get("pvc", "-l", "app=db")["items"]] == ["data-db-0"]
    operator.kubectl("delete", "statefulset", "db")
    operator.wait(40)
    assert operator.get("pvc", "-l", "app=db")["items"] == []


def test_each_pod_has_a_name_in_dns(operator: Operator) -> None:
    operator.apply(SERVICE, stateful_set(replicas=2))
    operator.wait(60)
    address = operator.path("{.status.podIP}", "pod", "db-1")
    found = operator.kubectl("exec", "db-0", "--", "getent", "hosts", "db-1.db.default.svc.cluster.local")
    assert found.split()[0] == address
    assert operator.kubectl("exec", "db-0", "--", "hostname") == "db-0\n"


def test_an_update_goes_from_the_last_to_the_first(operator: Operator) -> None:
    operator.apply(SERVICE, stateful_set())
    operator.wait(60)
    operator.kubectl("set", "image", "statefulset/db", "db=nginx:1.28")
    seen: list[dict[str, str]] = []
    for _ in range(40):
        operator.wait(1)
        seen.append(images(operator))
    new = [tuple(sorted(name for name, tag in state.items() if tag == "1.28")) for state in seen]
    order = list(dict.fromkeys(new))
    assert [state for state in order if state] == [("db-2",), ("db-1", "db-2"), ("db-0", "db-1", "db-2")]
    assert operator.kubectl("rollout", "status", "statefulset/db") == (
        "partitioned roll out complete: 3 new pods have been updated...\n"
    )


def test_a_partition_keeps_the_first_ones_as_they_are(operator: Operator) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    operator.apply(SERVICE, stateful_set(updateStrategy=strategy))
    operator.wait(60)
    operator.kubectl("set", "image", "statefulset/db", "db=nginx:1.28")
    operator.wait(30)
    assert images(operator) == {"db-0": "1.27", "db-1": "1.27", "db-2": "1.28"}
    status = operator.get("statefulset", "db")["status"]
    assert status["currentRevision"] != status["updateRevision"]
    assert status["updatedReplicas"] == 1
    assert operator.kubectl("rollout", "status", "statefulset/db") == (
        "partitioned roll out complete: 1 new pods have been updated...\n"
    )
    operator.kubectl("delete", "pod", "db-0")
    operator.wait(20)
    assert images(operator)["db-0"] == "1.27", "below the partition, the old revision is made again"
    operator.kubectl(
        "patch", "statefulset", "db", "-p", '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'
    )
    operator.wait(40)
    assert set(images(operator).values()) == {"1.28"}
    status = operator.get("statefulset", "db")["status"]
    assert status["currentRevision"] == status["updateRevision"]


def test_on_delete_waits_for_somebody_to_delete(operator: Operator) -> None:
    operator.apply(SERVICE, stateful_set(replicas=2, updateStrategy={"type": "OnDelete"}))
    operator.wait(60)
    operator.kubectl("set", "image", "statefulset/db", "db=nginx:1.28")
    operator.wait(30)
    assert set(images(operator).values()) == {"1.27"}
    operator.kubectl("delete", "pod", "db-0")
    operator.wait(20)
    assert images(operator) == {"db-0": "1.28", "db-1": "1.27"}


def test_parallel_starts_all_at_once(operator: Operator) -> None:
    operator.apply(SERVICE, stateful_set("nginx:1.99", podManagementPolicy="Parallel"))
    operator.wait(10)
    assert names(operator) == ["db-0", "db-1", "db-2"]


def test_history_and_undo(operator: Operator) -> None:
    operator.apply(SERVICE, stateful_set(replicas=1))
    operator.wait(30)
    operator.kubectl("set", "image", "statefulset/db", "db=nginx:1.28")
    operator.wait(30)
    history = operator.kubectl("rollout", "history", "statefulset/db").splitlines()
    assert [line.split()[0] for line in history[2:4]] == ["1", "2"]
    operator.kubectl("rollout", "undo", "statefulset/db")
    operator.wait(30)
    assert images(operator) == {"db-0": "1.27"}


def test_most_fields_cannot_be_changed(operator: Operator) -> None:
    operator.apply(SERVICE, stateful_set(replicas=1))
    refusal = operator.fails("patch", "statefulset", "db", "-p", '{"spec":{"serviceName":"other"}}')
    assert (
        'The StatefulSet "db" is invalid: spec: Forbidden: updates to statefulset spec for fields other than '
        "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
    ) in refusal
