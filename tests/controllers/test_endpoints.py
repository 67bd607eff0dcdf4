"""Endpoints and EndpointSlices: who is in, on which port, and how little changes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.controllers.slice_layout import SLICE_SIZE, layout
from srearena.cluster.embedded.objects import Obj, annotations_of, dig, labels_of, meta, name_of, uid_of
from tests.controllers.stage import Stage, template, workload

SLICES = "endpointslices.discovery.k8s.io"


def service(stage: Stage, name: str = "web", **spec: Any) -> None:
    body = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}], **spec}
    stage.create("services", {"metadata": {"name": name, "labels": {"team": "a"}}, "spec": body})


def addresses(stage: Stage, name: str = "web") -> list[str]:
    found = stage.the("endpoints", name)
    return [a["ip"] for subset in found.get("subsets") or () for a in subset.get("addresses") or ()]


def conditions(stage: Stage) -> dict[str, tuple[bool, bool, bool]]:
    """(ready, serving, terminating) by pod."""
    return {
        dig(endpoint, "targetRef", "name"): tuple(
            endpoint["conditions"][k] for k in ("ready", "serving", "terminating")
        )
        for piece in stage.list(SLICES)
        for endpoint in piece["endpoints"] or ()
    }


def test_a_service_knows_its_pods(stage: Stage) -> None:
    stage.node("node-z", topology__zone="")
    stage.edit("nodes", "node-1", lambda n: n["metadata"]["labels"].update({"topology.kubernetes.io/zone": "eu-1"}))
    service(stage)
    stage.create("deployments.apps", workload(replicas=2))
    stage.advance(5)
    pods = sorted(stage.pods(), key=lambda pod: str(pod["status"]["podIP"]))
    endpoints = stage.the("endpoints", "web")
    assert labels_of(endpoints) == {"team": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert endpoints["subsets"] == [
        {
            "addresses": [
                {
                    "ip": pod["status"]["podIP"],
                    "nodeName": pod["spec"]["nodeName"],
                    "targetRef": {"kind": "Pod", "namespace": "default", "name": name_of(pod), "uid": uid_of(pod)},
                }
                for pod in pods
            ],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }
    ]
    (piece,) = stage.list(SLICES)
    assert name_of(piece).startswith("web-")
    assert labels_of(piece) == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert meta(piece)["ownerReferences"][0]["kind"] == "Service"
    assert piece["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    first = next(e for e in piece["endpoints"] if e["nodeName"] == "node-1")
    assert first["zone"] == "eu-1"
    assert set(conditions(stage).values()) == {(True, True, False)}


def test_a_pod_that_is_not_ready_is_listed_but_not_used(stage: Stage) -> None:
    service(stage)
    stage.kubelets.fails = lambda pod: True
    stage.create("deployments.apps", workload(replicas=1))
    stage.advance(5)
    (pod,) = stage.pods()
    assert addresses(stage) == []
    assert stage.the("endpoints", "web")["subsets"][0]["notReadyAddresses"][0]["ip"] == pod["status"]["podIP"]
    assert conditions(stage) == {name_of(pod): (False, False, False)}
    stage.run(pod)
    stage.advance(1)
    assert addresses(stage) == [pod["status"]["podIP"]]
    assert conditions(stage) == {name_of(pod): (True, True, False)}


def test_a_terminating_pod_still_serves_in_slices_only(stage: Stage) -> None:
    stage.kubelets.stop_seconds = 20
    service(stage)
    stage.create("deployments.apps", workload(replicas=1))
    stage.advance(5)
    (pod,) = stage.pods()
    stage.delete("pods", name_of(pod))
    stage.advance(5)
    assert pod["status"]["podIP"] not in addresses(stage)
    assert conditions(stage)[name_of(pod)] == (False, True, True)
    stage.advance(20)
    assert name_of(pod) not in conditions(stage)


def test_unready_addresses_can_be_published(stage: Stage) -> None:
    service(stage, publishNotReadyAddresses=True)
    stage.kubelets.fails = lambda pod: True
    stage.create("deployments.apps", workload(replicas=1))
    stage.advance(5)
    assert len(addresses(stage)) == 1
    assert set(conditions(stage).values()) == {(True, False, False)}


def test_a_service_without_pods_has_an_empty_slice(stage: Stage) -> None:
    service(stage)
    stage.advance(2)
    (piece,) = stage.list(SLICES)
    assert not piece.get("endpoints")
    assert not piece.get("ports")
    assert "subsets" not in stage.the("endpoints", "web") or stage.the("endpoints", "web")["subsets"] == []
    stage.create("deployments.apps", workload(replicas=1))
    stage.advance(5)
    (piece,) = stage.list(SLICES)
    assert len(piece["endpoints"]) == 1
    stage.change("services", "web", spec__selector={"app": "nobody"})
    stage.advance(2)
    assert conditions(stage) == {}
    assert addresses(stage) == []


def test_a_named_port_means_what_each_pod_says(stage: Stage) -> None:
    service(stage, ports=[{"port": 80, "targetPort": "http"}])
    for name, number in (("one", 8080), ("two", 9090)):
        ports = [{"name": "http", "containerPort": number}]
        stage.create(
            "pods", {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": template(ports=ports)["spec"]}
        )
    stage.create("pods", {"metadata": {"name": "none", "labels": {"app": "web"}}, "spec": template()["spec"]})
    stage.advance(5)
    subsets = stage.the("endpoints", "web")["subsets"]
    assert sorted(subset["ports"][0]["port"] for subset in subsets) == [8080, 9090]
    assert all(len(subset["addresses"]) == 1 for subset in subsets)
    by_port = {dig(piece, "ports", 0, "port"): piece for piece in stage.list(SLICES)}
    assert sorted(by_port, key=str) == [8080, 9090, None]
    assert dig(by_port[None], "endpoints", 0, "targetRef", "name") == "none"


def test_headless_services_are_marked_and_keep_host_names(stage: Stage) -> None:
    service(stage, name="db", selector={"app": "db"}, clusterIP="None", ports=[])
    stage.create("statefulsets.apps", workload("db", serviceName="db", replicas=1))
    stage.advance(5)
    (piece,) = stage.list(SLICES)
    assert labels_of(piece)["service.kubernetes.io/headless"] == ""
    assert piece["endpoints"][0]["hostname"] == "db-0"
    endpoints = stage.the("endpoints", "db")
    assert labels_of(endpoints)["service.kubernetes.io/headless"] == ""
    assert endpoints["subsets"][0]["addresses"][0]["hostname"] == "db-0"


def test_everything_goes_with_the_service(stage: Stage) -> None:
    service(stage)
    stage.create("deployments.apps", workload(replicas=1))
    stage.advance(5)
    stage.delete("services", "web")
    stage.advance(3)
    assert stage.list(SLICES) == []
    assert stage.get("endpoints", "web") is None


def test_endpoints_and_slices_deleted_by_hand_come_back(stage: Stage) -> None:
    service(stage)
    stage.create("deployments.apps", workload(replicas=1))
    stage.advance(5)
    stage.delete("endpoints", "web")
    stage.delete(SLICES, name_of(stage.list(SLICES)[0]))
    stage.advance(3)
    assert len(addresses(stage)) == 1
    assert len(stage.list(SLICES)) == 1


def test_endpoints_written_by_hand_are_mirrored(stage: Stage) -> None:
    service(stage, name="outside", selector=None)
    subset = {"addresses": [{"ip": "192.0.2.10"}, {"ip": "192.0.2.11"}], "ports": [{"name": "http", "port": 5432}]}
    stage.create("endpoints", {"metadata": {"name": "outside"}, "subsets": [subset]})
    stage.advance(2)
    (piece,) = stage.list(SLICES)
    assert labels_of(piece)["endpointslice.kubernetes.io/managed-by"] == "endpointslicemirroring-controller.k8s.io"
    assert [endpoint["addresses"] for endpoint in piece["endpoints"]] == [["192.0.2.10"], ["192.0.2.11"]]
    assert meta(piece)["ownerReferences"][0]["kind"] == "Endpoints"
    stage.edit("endpoints", "outside", lambda obj: obj["subsets"][0]["addresses"].pop())
    stage.advance(2)
    (again,) = stage.list(SLICES)
    assert name_of(again) == name_of(piece)
    assert len(again["endpoints"]) == 1
    stage.delete("endpoints", "outside")
    stage.advance(2)
    assert stage.list(SLICES) == []


def test_nearness_is_hinted_at(stage: Stage) -> None:
    for number, zone in ((1, "a"), (2, "b"), (3, "c")):
        labels = {"topology.kubernetes.io/zone": zone}
        stage.edit("nodes", f"node-{number}", lambda node, labels=labels: node["metadata"]["labels"].update(labels))
    service(stage, trafficDistribution="PreferClose")
    stage.create("deployments.apps", workload(replicas=3))
    stage.advance(5)
    (piece,) = stage.list(SLICES)
    assert {e["zone"]: e["hints"]["forZones"][0]["name"] for e in piece["endpoints"]} == {"a": "a", "b": "b", "c": "c"}


def test_many_pods_are_cut_into_slices_and_one_change_touches_one(stage: Stage) -> None:
    service(stage)
    stage.create("deployments.apps", workload(replicas=250))
    stage.advance(20)
    pieces = stage.list(SLICES)
    assert sorted(len(piece["endpoints"]) for piece in pieces) == [50, 100, 100]
    versions = {name_of(piece): meta(piece)["resourceVersion"] for piece in pieces}
    victim = stage.the("pods", dig(pieces[0], "endpoints", 0, "targetRef", "name"))
    stage.run(victim, ready=False)
    stage.advance(2)
    changed = [
        name for name, version in versions.items() if meta(stage.the(SLICES, name))["resourceVersion"] != version
    ]
    assert changed == [name_of(pieces[0])]
    assert "endpoints.kubernetes.io/last-change-trigger-time" in annotations_of(pieces[0])


def _endpoint(number: int) -> Obj:
    return {"addresses": [f"10.0.{number // 250}.{number % 250}"], "targetRef": {"uid": str(number)}}


@given(st.lists(st.sets(st.integers(0, 600), max_size=300), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_layouts_hold_exactly_what_is_wanted(history: list[set[int]]) -> None:
    pieces: dict[str, list[Obj]] = {}
    serial = 0
    for wanted in history:
        known = [{"metadata": {"name": name}, "endpoints": contents} for name, contents in pieces.items()]
        plan = layout(known, [_endpoint(number) for number in sorted(wanted)])
        pieces.update(plan.update)
        for name in plan.delete:
            del pieces[name]
        for contents in plan.create:
            serial += 1
            pieces[f"piece-{serial}"] = contents
        held = [endpoint["targetRef"]["uid"] for contents in pieces.values() for endpoint in contents]
        assert sorted(map(int, held)) == sorted(wanted)
        assert all(len(contents) <= SLICE_SIZE for contents in pieces.values())
