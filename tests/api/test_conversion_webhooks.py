"""Custom resources whose versions a webhook converts, on the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import httpx
import pytest

from srearena.cluster.embedded.clock import Signal
from srearena.cluster.embedded.controllers.custom_resources import CustomResourceController
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.admission.webhook_rules import Webhook
from srearena.cluster.embedded.registry.admission.webhooks import Answer
from srearena.cluster.embedded.world import World
from tests.clusters import RunningApi, bare_world, running

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
V1 = "/apis/example.com/v1/namespaces/default/boxes"
V2 = "/apis/example.com/v2/namespaces/default/boxes"


def version(name: str, stored: bool, **fields: Obj) -> Obj:
    spec = {"type": "object", "properties": fields}
    schema = {"type": "object", "properties": {"spec": spec}}
    selectable = [{"jsonPath": f".spec.{field}"} for field in fields]
    about = {"schema": {"openAPIV3Schema": schema}, "selectableFields": selectable}
    return {"name": name, "served": True, "storage": stored, **about}


DEFINITION: Obj = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boxes.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
        "versions": [
            version("v1", True, address={"type": "string"}),
            version("v2", False, host={"type": "string"}, port={"type": "string"}),
        ],
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"service": {"namespace": "default", "name": "converter", "path": "/convert"}},
                "conversionReviewVersions": ["v1"],
            },
        },
    },
}


class Converter:
    """Splits `address` of v1 into `host` and `port` of v2, and joins them again, a tenth of a second later."""

    def __init__(self, world: World) -> None:
        self._clock = world.clock
        self.calls: list[int] = []
        self.failure = ""

    def call(self, webhook: Webhook, review: Obj) -> Signal[Answer]:
        request = review["request"]
        self.calls.append(len(request["objects"]))
        converted = [self._convert(deepcopy(obj), request["desiredAPIVersion"]) for obj in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}
        answer = Answer(failure=self.failure) if self.failure else Answer({"response": response})
        signal: Signal[Answer] = Signal(self._clock)
        self._clock.after(0.1, signal.set, answer)
        return signal

    @staticmethod
    def _convert(obj: Obj, api_version: str) -> Obj:
        spec = obj["spec"]
        if api_version.endswith("v2"):
            host, _, port = spec["address"].partition(":")
            spec = {"host": host, "port": port}
        else:
            spec = {"address": f"{spec['host']}:{spec['port']}"}
        # The metadata that a webhook loses or changes stays what it was, except for labels and annotations.
        metadata = {"name": "renamed", "labels": {"converted": "yes"}}
        return {"apiVersion": api_version, "kind": obj["kind"], "metadata": metadata, "spec": spec}


@pytest.fixture
def api() -> Iterator[RunningApi]:
    world = bare_world()
    CustomResourceController(world).start()
    world.registry.conversion_calls.caller = Converter(world)
    with running(world) as served, served.http() as client:
        client.post(DEFINITIONS, json=DEFINITION).raise_for_status()
        served.advance(2)
        yield served


@pytest.fixture
def converter(api: RunningApi) -> Converter:
    caller = api.world.registry.conversion_calls.caller
    assert isinstance(caller, Converter)
    return caller


def box(version: str, name: str, **spec: Any) -> Obj:
    return {"apiVersion": f"example.com/{version}", "kind": "Box", "metadata": {"name": name}, "spec": spec}


def test_writes_and_reads_in_another_version(api: RunningApi, http: httpx.Client, converter: Converter) -> None:
    created = http.post(V2, json=box("v2", "a", host="db", port="5432"))
    assert (created.status_code, created.json()["spec"]) == (201, {"host": "db", "port": "5432"})
    stored = api.call(lambda: api.world.store.get("boxes.example.com", "default", "a"))
    assert (stored["apiVersion"], stored["spec"]) == ("example.com/v1", {"address": "db:5432"})
    read = http.get(f"{V2}/a").json()
    assert (read["metadata"]["name"], read["metadata"]["uid"]) == ("a", created.json()["metadata"]["uid"])
    assert read["metadata"]["labels"] == {"converted": "yes"}
    assert http.get(f"{V1}/a").json()["spec"] == {"address": "db:5432"}
    patch = http.patch(
        f"{V2}/a", json={"spec": {"port": "1"}}, headers={"content-type": "application/merge-patch+json"}
    )
    assert patch.json()["spec"] == {"host": "db", "port": "1"}
    assert http.delete(f"{V2}/a").status_code == 200


def test_a_list_is_converted_in_one_call(api: RunningApi, http: httpx.Client, converter: Converter) -> None:
    for name in ("a", "b", "c"):
        http.post(V1, json=box("v1", name, address=f"{name}:80")).raise_for_status()
    assert converter.calls == []
    hosts = [item["spec"]["host"] for item in http.get(V2).json()["items"]]
    assert (hosts, converter.calls) == (["a", "b", "c"], [3])


def test_a_watch_shows_objects_in_its_version(api: RunningApi, http: httpx.Client) -> None:
    http.post(V1, json=box("v1", "a", address="a:80")).raise_for_status()
    with http.stream("GET", V2, params={"watch": "true", "timeoutSeconds": "10"}) as watched:
        lines = watched.iter_lines()
        assert json.loads(next(lines))["object"]["spec"] == {"host": "a", "port": "80"}
        http.post(V1, json=box("v1", "b", address="b:90")).raise_for_status()
        assert json.loads(next(lines))["object"]["spec"] == {"host": "b", "port": "90"}


def test_fields_are_selected_in_the_requested_version(http: httpx.Client) -> None:
    for name in ("a", "b"):
        http.post(V1, json=box("v1", name, address=f"{name}:80")).raise_for_status()
    chosen = {"fieldSelector": "spec.host=a"}
    assert [item["metadata"]["name"] for item in http.get(V2, params=chosen).json()["items"]] == ["a"]
    with http.stream("GET", V2, params={**chosen, "watch": "true", "timeoutSeconds": "10"}) as watched:
        lines = watched.iter_lines()
        assert json.loads(next(lines))["object"]["metadata"]["name"] == "a"
        merge = {"content-type": "application/merge-patch+json"}
        http.patch(f"{V1}/b", json={"spec": {"address": "a:90"}}, headers=merge).raise_for_status()
        event = json.loads(next(lines))
        assert (event["type"], event["object"]["spec"]) == ("ADDED", {"host": "a", "port": "90"})
        http.patch(f"{V1}/b", json={"spec": {"address": "c:90"}}, headers=merge).raise_for_status()
        event = json.loads(next(lines))
        assert (event["type"], event["object"]["spec"]["host"]) == ("DELETED", "a")
    http.delete(V2, params=chosen).raise_for_status()
    assert [item["metadata"]["name"] for item in http.get(V1).json()["items"]] == ["b"]


def test_a_webhook_that_fails_makes_the_version_unreadable(http: httpx.Client, converter: Converter) -> None:
    http.post(V1, json=box("v1", "a", address="a:80")).raise_for_status()
    assert http.get(f"{V2}/a").status_code == 200
    converter.failure = 'Post "https://converter.default.svc:443/convert?timeout=30s": context deadline exceeded'
    refused = http.get(f"{V2}/a")
    assert (refused.status_code, refused.json()["message"]) == (
        500,
        f"conversion webhook for example.com/v1, Kind=Box failed: {converter.failure}",
    )
    assert http.get(f"{V1}/a").status_code == 200
