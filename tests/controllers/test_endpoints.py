"""Endpoints and EndpointSlices: who is in, on which port, and how little changes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.controllers.slice_layout import SLICE_SIZE, layout
from srearena.cluster.embedded.objects import Obj, annotations_of, dig, labels_of, meta, name_of, uid_of
from tests.controllers.bench import Bench, template, workload

SLICES = "endpointslices.discovery.k8s.io"


def service(bench: Bench, name: str = "web", **spec: Any) -> None:
    body = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}], **spec}
    bench.create("services", {"metadata": {"name": name, "labels": {"team": "a"}}, "spec": body})


def addresses(bench: Bench, name: str = "web") -> list[str]:
    found = bench.the("endpoints", name)
    return [a["ip"] for subset in found.get("subsets") or () for a in subset.get("addresses") or ()]


def conditions(bench: Bench) -> dict[str, tuple[bool, bool, bool]]:
    """(ready, serving, terminating) by pod."""
    return {
        dig(endpoint, "targetRef", "name"): tuple(
            endpoint["conditions"][k] for k in ("ready", "serving", "terminating")
        )
        for piece in bench.list(SLICES)
        for endpoint in piece["endpoints"] or ()
    }


def test_a_service_knows_its_pods(bench: Bench) -> None:
    bench.node("node-z", topology__zone="")
    bench.edit("nodes", "node-1", lambda n: n["metadata"]["labels"].update({"topology.kubernetes.io/zone": "eu-1"}))
    service(bench)
    bench.create("deployments.apps", workload(replicas=2))
    bench.advance(5)
    pods = sorted(bench.pods(), key=lambda pod: str(pod["status"]["podIP"]))
    endpoints = bench.the("endpoints", "web")
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
    (piece,) = bench.list(SLICES)
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
    assert set(conditions(bench).values()) == {(True, True, False)}


def test_a_pod_that_is_not_ready_is_listed_but_not_used(bench: Bench) -> None:
    service(bench)
    bench.kubelets.fails = lambda pod: True
    bench.create("deployments.apps", workload(replicas=1))
    bench.advance(5)
    (pod,) = bench.pods()
    assert addresses(bench) == []
    assert bench.the("endpoints", "web")["subsets"][0]["notReadyAddresses"][0]["ip"] == pod["status"]["podIP"]
    assert conditions(bench) == {name_of(pod): (False, False, False)}
    bench.run(pod)
    bench.advance(1)
    assert addresses(bench) == [pod["status"]["podIP"]]
    assert conditions(bench) == {name_of(pod): (True, True, False)}


def test_a_terminating_pod_still_serves_in_slices_only(bench: Bench) -> None:
    bench.kubelets.stop_seconds = 20
    service(bench)
    bench.create("deployments.apps", workload(replicas=1))
    bench.advance(5)
    (pod,) = bench.pods()
    bench.delete("pods", name_of(pod))
    bench.advance(5)
    assert pod["status"]["podIP"] not in addresses(bench)
    assert conditions(bench)[name_of(pod)] == (False, True, True)
    bench.advance(20)
    assert name_of(pod) not in conditions(bench)


def test_unready_addresses_can_be_published(bench: Bench) -> None:
    service(bench, publishNotReadyAddresses=True)
    bench.kubelets.fails = lambda pod: True
    bench.create("deployments.apps", workload(replicas=1))
    bench.advance(5)
    assert len(addresses(bench)) == 1
    assert set(conditions(bench).values()) == {(True, False, False)}


def test_a_service_without_pods_has_an_empty_slice(bench: Bench) -> None:
    service(bench)
    bench.advance(2)
    (piece,) = bench.list(SLICES)
    assert not piece.get("endpoints")
    assert not piece.get("ports")
    assert "subsets" not in bench.the("endpoints", "web") or bench.the("endpoints", "web")["subsets"] == []
    bench.create("deployments.apps", workload(replicas=1))
    bench.advance(5)
    (piece,) = bench.list(SLICES)
    assert len(piece["endpoints"]) == 1
    bench.change("services", "web", spec__selector={"app": "nobody"})
    bench.advance(2)
    assert conditions(bench) == {}
    assert addresses(bench) == []


def test_a_named_port_means_what_each_pod_says(bench: Bench) -> None:
    service(bench, ports=[{"port": 80, "targetPort": "http"}])
    for name, number in (("one", 8080), ("two", 9090)):
        ports = [{"name": "http", "containerPort": number}]
        bench.create(
            "pods", {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": template(ports=ports)["spec"]}
        )
    bench.create("pods", {"metadata": {"name": "none", "labels": {"app": "web"}}, "spec": template()["spec"]})
    bench.advance(5)
    subsets = bench.the("endpoints", "web")["subsets"]
    assert sorted(subset["ports"][0]["port"] for subset in subsets) == [8080, 9090]
    assert all(len(subset["addresses"]) == 1 for subset in subsets)
    by_port = {dig(piece, "ports", 0, "port"): piece for piece in bench.list(SLICES)}
    assert sorted(by_port, key=str) == [8080, 9090, None]
    assert dig(by_port[None], "endpoints", 0, "targetRef", "name") == "none"


def test_headless_services_are_marked_and_keep_host_names(bench: Bench) -> None:
    service(bench, name="db", selector={"app": "db"}, clusterIP="None", ports=[])
    bench.create("statefulsets.apps", workload("db", serviceName="db", replicas=1))
    bench.advance(5)
    (piece,) = bench.list(SLICES)
    assert labels_of(piece)["service.kubernetes.io/headless"] == ""
    assert piece["endpoints"][0]["hostname"] == "db-0"
    endpoints = bench.the("endpoints", "db")
    assert labels_of(endpoints)["service.kubernetes.io/headless"] == ""
    assert endpoints["subsets"][0]["addresses"][0]["hostname"] == "db-0"


def test_everything_goes_with_the_service(bench: Bench) -> None:
    service(bench)
    bench.create("deployments.apps", workload(replicas=1))
    bench.advance(5)
    bench.delete("services", "web")
    bench.advance(3)
    assert bench.list(SLICES) == []
    assert bench.get("endpoints", "web") is None


def test_endpoints_and_slices_deleted_by_hand_come_back(bench: Bench) -> None:
    service(bench)
    bench.create("deployments.apps", workload(replicas=1))
    bench.advance(5)
    bench.delete("endpoints", "web")
    bench.delete(SLICES, name_of(bench.list(SLICES)[0]))
    bench.advance(3)
    assert len(addresses(bench)) == 1
    assert len(bench.list(SLICES)) == 1


def test_endpoints_written_by_hand_are_mirrored(bench: Bench) -> None:
    service(bench, name="outside", selector=None)
    subset = {"addresses": [{"ip": "192.0.2.10"}, {"ip": "192.0.2.11"}], "ports": [{"name": "http", "port": 5432}]}
    bench.create("endpoints", {"metadata": {"name": "outside"}, "subsets": [subset]})
    bench.advance(2)
    (piece,) = bench.list(SLICES)
    assert labels_of(piece)["endpointslice.kubernetes.io/managed-by"] == "endpointslicemirroring-controller.k8s.io"
    assert [endpoint["addresses"] for endpoint in piece["endpoints"]] == [["192.0.2.10"], ["192.0.2.11"]]
    assert meta(piece)["ownerReferences"][0]["kind"] == "Endpoints"
    bench.edit("endpoints", "outside", lambda obj: obj["subsets"][0]["addresses"].pop())
    bench.advance(2)
    (again,) = bench.list(SLICES)
    assert name_of(again) == name_of(piece)
    assert len(again["endpoints"]) == 1
    bench.delete("endpoints", "outside")
    bench.advance(2)
    assert bench.list(SLICES) == []


def test_nearness_is_hinted_at(bench: Bench) -> None:
    for number, zone in ((1, "a"), (2, "b"), (3, "c")):
        labels = {"topology.kubernetes.io/zone": zone}
        bench.edit("nodes", f"node-{number}", lambda node, labels=labels: node["metadata"]["labels"].update(labels))
    service(bench, trafficDistribution="PreferClose")
    bench.create("deployments.apps", workload(replicas=3))
    bench.advance(5)
    (piece,) = bench.list(SLICES)
    assert {e["zone"]: e["hints"]["forZones"][0]["name"] for e in piece["endpoints"]} == {"a": "a", "b": "b", "c": "c"}


def test_many_pods_are_cut_into_slices_and_one_change_touches_one(bench: Bench) -> None:
    service(bench)
    bench.create("deployments.apps", workload(replicas=250))
    bench.advance(20)
    pieces = bench.list(SLICES)
    assert sorted(len(piece["endpoints"]) for piece in pieces) == [50, 100, 100]
    versions = {name_of(piece): meta(piece)["resourceVersion"] for piece in pieces}
    victim = bench.the("pods", dig(pieces[0], "endpoints", 0, "targetRef", "name"))
    bench.run(victim, ready=False)
    bench.advance(2)
    changed = [
        name for name, version in versions.items() if meta(bench.the(SLICES, name))["resourceVersion"] != version
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
        uids = [endpoint["targetRef"]["uid"] for contents in pieces.values() for endpoint in contents]
        assert sorted(map(int, uids)) == sorted(wanted)
        assert all(len(contents) <= SLICE_SIZE for contents in pieces.values())
