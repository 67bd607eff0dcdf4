"""get and list: pages, versions, selectors, and the shapes a client may ask for."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import yaml

from srearena.cluster.embedded.recorder import Recorder
from srearena.cluster.embedded.registry.identity import component
from tests.clusters import RunningApi

HOME = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def _make(http: httpx.Client, *names: str, **labels: str) -> list[dict[str, Any]]:
    created_objects = []
    for name in names:
        reply = http.post(HOME, json={"metadata": {"name": name, "labels": labels}, "data": {"of": name}})
        reply.raise_for_status()
        created_objects.append(reply.json())
    return created_objects


def _names(listed: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def test_a_list_has_kind_version_and_the_order_of_names(http: httpx.Client) -> None:
    _make(http, "b", "c", "a")
    listed = http.get(HOME).json()
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert _names(listed) == ["a", "b", "c"]
    newest = max(int(item["metadata"]["resourceVersion"]) for item in listed["items"])
    assert int(listed["metadata"]["resourceVersion"]) >= newest


def test_what_is_not_there_is_not_found(http: httpx.Client) -> None:
    reply = http.get(f"{HOME}/ghost")
    assert reply.status_code == 404
    assert reply.json()["message"] == 'configmaps "ghost" not found'
    assert reply.json()["details"] == {"name": "ghost", "kind": "configmaps"}


def test_pages_make_up_one_consistent_list_while_things_change(http: httpx.Client) -> None:
    _make(http, "a", "b", "c", "d", "e")
    first = http.get(f"{HOME}?limit=2").json()
    assert _names(first) == ["a", "b"] and first["metadata"]["remainingItemCount"] == 3
    http.delete(f"{HOME}/c").raise_for_status()
    _make(http, "bb", "f")
    second = http.get(f"{HOME}?limit=2&continue={first['metadata']['continue']}").json()
    assert _names(second) == ["c", "d"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    third = http.get(f"{HOME}?limit=2&continue={second['metadata']['continue']}").json()
    assert _names(third) == ["e"] and "continue" not in third["metadata"]


def test_pages_across_namespaces(http: httpx.Client) -> None:
    _make(http, "a", "b")
    http.post("/api/v1/namespaces/kube-system/configmaps", json={"metadata": {"name": "a"}}).raise_for_status()
    seen, token = [], ""
    while True:
        page = http.get(f"/api/v1/configmaps?limit=1&continue={token}").json()
        seen += [(i["metadata"]["namespace"], i["metadata"]["name"]) for i in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert seen == [("default", "a"), ("default", "b"), ("kube-system", "a")]


def test_a_page_too_late_is_expired_and_offers_to_go_on(http: httpx.Client, api: RunningApi) -> None:
    _make(http, "a", "b", "c")
    first = http.get(f"{HOME}?limit=1").json()

    def churn() -> None:
        client = api.world.component_client("test")
        for number in range(1200):
            client.modify("configmaps", "default", "a", lambda obj, n=number: obj.__setitem__("data", {"n": str(n)}))

    api.call(churn)
    late = http.get(f"{HOME}?limit=1&continue={first['metadata']['continue']}")
    assert late.status_code == 410
    status = late.json()
    assert status["reason"] == "Expired"
    rest = http.get(f"{HOME}?continue={status['metadata']['continue']}").json()
    assert _names(rest) == ["b", "c"]


@pytest.mark.parametrize("token", ["!!!", "abc", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiIifQ"])
def test_a_continue_token_that_is_none_is_refused(http: httpx.Client, token: str) -> None:
    reply = http.get(f"{HOME}?limit=1", params={"limit": "1", "continue": token})
    assert reply.status_code == 400
    assert reply.json()["message"].startswith("invalid continue token: continue key is not valid: ")


def test_an_exact_version_shows_the_past(http: httpx.Client) -> None:
    _make(http, "a", "b")
    then = http.get(HOME).json()["metadata"]["resourceVersion"]
    http.delete(f"{HOME}/a").raise_for_status()
    _make(http, "c")
    past = http.get(f"{HOME}?resourceVersion={then}&resourceVersionMatch=Exact").json()
    assert _names(past) == ["a", "b"] and past["metadata"]["resourceVersion"] == then
    assert _names(http.get(f"{HOME}?resourceVersion={then}&resourceVersionMatch=NotOlderThan").json()) == ["b", "c"]
    assert _names(http.get(f"{HOME}?resourceVersion={then}").json()) == ["b", "c"]
    assert _names(http.get(f"{HOME}?resourceVersion=0").json()) == ["b", "c"]


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ("resourceVersion=abc", 400, "Invalid value"),
        ("resourceVersion=999999999", 504, "Too large resource version"),
        ("resourceVersionMatch=Exact", 422, "forbidden unless resourceVersion is provided"),
        ("resourceVersionMatch=Exact&resourceVersion=0", 422, 'forbidden for resourceVersion "0"'),
        ("resourceVersionMatch=Other&resourceVersion=1", 422, "Unsupported value"),
        ("sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"),
        ("labelSelector=a%3D%3D%3Db", 400, "found"),
        ("labelSelector=a%20in%20(", 400, "parse"),
        ("fieldSelector=spec.nothing%3Dx", 400, "not a known field selector"),
        ("fieldSelector=nonsense", 400, "can't understand"),
        ("limit=many", 400, "invalid syntax"),
    ],
)
def test_bad_parameters_are_refused_in_words(http: httpx.Client, query: str, code: int, text: str) -> None:
    reply = http.get(f"{HOME}?{query}")
    assert reply.status_code == code
    assert text in reply.json()["message"]


def test_selectors_choose(http: httpx.Client) -> None:
    _make(http, "a", "b", app="web")
    _make(http, "c", app="db")
    assert _names(http.get(f"{HOME}?labelSelector=app%3Dweb").json()) == ["a", "b"]
    assert _names(http.get(f"{HOME}?labelSelector=app+in+(db,cache)").json()) == ["c"]
    assert _names(http.get(f"{HOME}?labelSelector=!app").json()) == []
    assert _names(http.get(f"{HOME}?fieldSelector=metadata.name%3Db").json()) == ["b"]
    paged = http.get(f"{HOME}?labelSelector=app%3Dweb&limit=1").json()
    assert _names(paged) == ["a"] and "remainingItemCount" not in paged["metadata"]


def test_a_table_has_columns_and_rows(http: httpx.Client) -> None:
    _make(http, "a", "b")
    table = http.get(HOME, headers={"accept": TABLE}).json()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [row["cells"][:2] for row in table["rows"]] == [["a", 1], ["b", 1]]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    whole = http.get(f"{HOME}/a?includeObject=Object", headers={"accept": TABLE}).json()
    assert whole["rows"][0]["object"]["data"] == {"of": "a"}
    assert http.get(f"{HOME}?includeObject=Rubbish", headers={"accept": TABLE}).status_code == 400


def test_bare_metadata(http: httpx.Client) -> None:
    _make(http, "a")
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
    listed = http.get(HOME, headers={"accept": accept}).json()
    assert listed["kind"] == "PartialObjectMetadataList"
    assert "data" not in listed["items"][0] and _names(listed) == ["a"]
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    assert http.get(f"{HOME}/a", headers={"accept": accept}).json()["kind"] == "PartialObjectMetadata"


def test_yaml_pretty_and_what_is_not_acceptable(http: httpx.Client) -> None:
    _make(http, "a")
    reply = http.get(f"{HOME}/a", headers={"accept": "application/yaml"})
    assert reply.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(reply.text)["data"] == {"of": "a"}
    assert http.get(f"{HOME}/a?pretty=true").text.startswith("{\n")
    first_choice = "application/vnd.kubernetes.protobuf,application/json"
    assert http.get(f"{HOME}/a", headers={"accept": first_choice}).headers["content-type"] == "application/json"
    for accept in (
        "text/html",
        "application/json;as=Rubbish;v=v1;g=meta.k8s.io",
    ):
        reply = http.get(f"{HOME}/a", headers={"accept": accept})
        assert reply.status_code == 406
        assert reply.json()["reason"] == "NotAcceptable"


def test_events_are_the_same_objects_in_both_groups(http: httpx.Client, api: RunningApi) -> None:
    namespace = http.get("/api/v1/namespaces/default").json()
    recorder = Recorder(api.world, "tester", component("tester"))
    api.call(lambda: recorder.event(namespace, "Warning", "Odd", "something is odd"))
    core = http.get("/api/v1/namespaces/default/events").json()["items"]
    modern = http.get("/apis/events.k8s.io/v1/namespaces/default/events").json()["items"]
    assert [e["metadata"]["name"] for e in core] == [e["metadata"]["name"] for e in modern]
    assert core[0]["message"] == "something is odd" and modern[0]["note"] == "something is odd"
    assert modern[0]["regarding"]["name"] == core[0]["involvedObject"]["name"] == "default"
    chosen = http.get("/api/v1/events?fieldSelector=involvedObject.name%3Ddefault,reason%3DOdd").json()
    assert len(chosen["items"]) == 1


def test_component_statuses_are_computed(http: httpx.Client) -> None:
    reply = http.get("/api/v1/componentstatuses")
    assert _names(reply.json()) == ["controller-manager", "etcd-0", "scheduler"]
    assert reply.headers["warning"] == '299 - "v1 ComponentStatus is deprecated in v1.19+"'
    assert http.get("/api/v1/componentstatuses/nobody").status_code == 404
