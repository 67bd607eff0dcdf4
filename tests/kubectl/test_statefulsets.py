"""Pods with names and disks of their own: in order, one by one, and rolled from the end."""

from __future__ import annotations

from .operator import Operator

DATABASE = """
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 6379}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - name: redis
        image: redis:7.2
        readinessProbe: {tcpSocket: {port: 6379}, initialDelaySeconds: 5}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def images(operator: Operator) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in operator.pods("app=db")}


def names(operator: Operator) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in operator.pods("app=db"))


def test_pods_come_one_after_the_other_with_disks_that_stay(operator: Operator) -> None:
    operator.apply(DATABASE)
    operator.wait(8)
    assert names(operator) == ["db-0"], "the second waits until the first is ready"
    operator.wait(60)
    assert names(operator) == ["db-0", "db-1", "db-2"]
    claims = operator.get("pvc")["items"]
    assert {c["metadata"]["name"]: c["status"]["phase"] for c in claims} == dict.fromkeys(
        ("data-db-0", "data-db-1", "data-db-2"), "Bound"
    )
    operator.kubectl("exec", "db-1", "--", "sh", "-c", "echo kept > /data/mark")
    operator.kubectl("delete", "pod", "db-1", "--wait=false")
    operator.wait(60)
    assert operator.kubectl("exec", "db-1", "--", "cat", "/data/mark") == "kept\n"
    peer = operator.kubectl("exec", "db-0", "--", "getent", "hosts", "db-2.db.default.svc.cluster.local")
    assert operator.path("{.status.podIP}", "pod", "db-2") in peer
    operator.kubectl("scale", "statefulset/db", "--replicas=1")
    operator.wait(120)
    assert names(operator) == ["db-0"]
    assert len(operator.get("pvc")["items"]) == 3, "disks outlive the pods"


def test_a_partition_rolls_the_tail_only(operator: Operator) -> None:
    operator.apply(DATABASE)
    operator.wait(90)
    operator.kubectl(
        "patch", "statefulset", "db", "-p", '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}'
    )
    operator.kubectl("set", "image", "statefulset/db", "redis=redis:7.4")
    operator.wait(120)
    assert images(operator) == {"db-0": "redis:7.2", "db-1": "redis:7.2", "db-2": "redis:7.4"}
    status = operator.get("statefulset", "db")["status"]
    assert (status["updatedReplicas"], status["currentReplicas"]) == (1, 2)
    assert status["currentRevision"] != status["updateRevision"]
    operator.kubectl(
        "patch", "statefulset", "db", "-p", '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'
    )
    operator.wait(180)
    assert set(images(operator).values()) == {"redis:7.4"}
    status = operator.get("statefulset", "db")["status"]
    assert status["currentRevision"] == status["updateRevision"]


def test_a_broken_revision_stops_at_the_last_pod(operator: Operator) -> None:
    operator.apply(DATABASE)
    operator.wait(90)
    operator.kubectl("set", "image", "statefulset/db", "redis=redis:nosuch")
    operator.wait(120)
    assert images(operator) == {"db-0": "redis:7.2", "db-1": "redis:7.2", "db-2": "redis:nosuch"}
    waiting = operator.get("pod", "db-2")["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]
    assert waiting in ("ImagePullBackOff", "ErrImagePull")
    operator.kubectl("rollout", "undo", "statefulset/db")
    # The controller waits for the broken pod, as the real one does: it must be taken away by hand.
    operator.kubectl("delete", "pod", "db-2", "--wait=false")
    operator.wait(120)
    assert set(images(operator).values()) == {"redis:7.2"}
    assert "partitioned roll out complete" in operator.kubectl(
        "rollout", "status", "statefulset/db", "--timeout=5s"
    ) or "rolling update complete" in operator.kubectl("rollout", "status", "statefulset/db", "--timeout=5s")


def test_most_of_the_spec_cannot_be_changed(operator: Operator) -> None:
    operator.apply(DATABASE)
    refused = operator.fails("patch", "statefulset", "db", "-p", '{"spec":{"serviceName":"other"}}')
    assert "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template'" in refused
