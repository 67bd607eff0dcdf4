"""Logs in memory: what was read of a pod stays readable after the pod is deleted."""

from __future__ import annotations

from typing import Any

from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes
from srearena.service.telemetry import PodLogs


class OfPods:
    """What `PodLogs` asks of a Kubernetes client, with logs that the test writes."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.texts: dict[tuple[str, bool], str] = {}

    def add(self, name: str, uid: str, *, restarts: int = 0, started: bool = True) -> None:
        status = {"containerStatuses": [{"name": "main", "restartCount": restarts}]} if started else {}
        self.pods[name] = {"metadata": {"name": name, "uid": uid, "labels": {"app": "web"}}, "status": status}

    def list(self, resource: str, namespace: str) -> list[dict[str, Any]]:
        return list(self.pods.values()) if namespace == "shop" else []

    def logs(self, name: str, namespace: str, *, container: str, previous: bool, tail: int) -> str:
        if (name, previous) not in self.texts:
            raise ServiceError(f"no logs of {name}")
        return "\n".join(self.texts[name, previous].splitlines()[-tail:]) + "\n"


def logs_of(pods: OfPods) -> PodLogs:
    return PodLogs(pods)  # type: ignore[arg-type]


def test_a_deleted_pod_keeps_what_was_read_of_it() -> None:
    pods = OfPods()
    pods.add("web-5f6d-aaaaa", "1")
    pods.texts["web-5f6d-aaaaa", False] = "one\ntwo\nthree"
    logs = logs_of(pods)
    assert logs.of_service("shop", "web", 2) == "==> web-5f6d-aaaaa/main <==\ntwo\nthree"
    pods.pods.clear()
    pods.add("web-7c8b-bbbbb", "2", restarts=1)
    pods.texts["web-7c8b-bbbbb", True] = "panic"
    assert logs.of_service("shop", "web", 2).splitlines() == [
        "==> web-5f6d-aaaaa/main (deleted; as it was last read) <==",
        "two",
        "three",
        "==> web-7c8b-bbbbb/main (before its restart) <==",
        "panic",
        "==> web-7c8b-bbbbb/main <==",
        "no logs of web-7c8b-bbbbb",
    ]


def test_a_replaced_pod_of_the_same_name_is_another_pod() -> None:
    pods = OfPods()
    pods.add("db-0", "1")
    pods.texts["db-0", False] = "old"
    logs = logs_of(pods)
    logs.of_service("shop", "db", 10)
    pods.add("db-0", "2")
    pods.texts["db-0", False] = "new"
    assert logs.of_service("shop", "db", 10).splitlines() == [
        "==> db-0/main (deleted; as it was last read) <==",
        "old",
        "==> db-0/main <==",
        "new",
    ]


def test_only_pods_of_the_service_are_read() -> None:
    pods = OfPods()
    pods.add("web-5f6d-aaaaa", "1", started=False)
    logs = logs_of(pods)
    assert logs.of_service("shop", "web", 10) == "==> web-5f6d-aaaaa: nothing has run yet <=="
    assert logs.of_service("shop", "webby", 10) == "no pod in shop belongs to webby"
    assert logs.of_service("bank", "web", 10) == "no pod in bank belongs to web", "not of another namespace"


def test_it_reads_a_cluster(api: Kubernetes) -> None:
    assert "==> coredns" in PodLogs(api).of_service("kube-system", "coredns", 5)
