"""The protobuf encoding of built-in kinds, both ways."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import httpx
import pytest

from srearena.cluster.embedded.api import openapi_protobuf, protobuf, protobuf_encoding
from srearena.cluster.embedded.api.protobuf_table import SCALARS, message_of, messages

HOME = "/api/v1/namespaces/default"
BINARY = {"content-type": protobuf.MEDIA_TYPE}
ONLY_BINARY = {"accept": protobuf.MEDIA_TYPE}
OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
WITHOUT_TABLE = {"intstr.IntOrString", "resource.Quantity", "runtime.RawExtension"}


def test_every_message_that_a_field_names_is_in_the_table() -> None:
    table = messages()
    named = {field.kind for fields in table.values() for field in fields.values()}
    assert named - SCALARS - WITHOUT_TABLE <= set(table)


def test_every_served_kind_has_a_message(http: httpx.Client) -> None:
    headers = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    for path in ("/api", "/apis"):
        for group in http.get(path, headers=headers).json()["items"]:
            name = group["metadata"].get("name", "")
            if name == "metrics.k8s.io":
                continue
            for version in group["versions"]:
                api_version = f"{name}/{version['version']}" if name else version["version"]
                missing = [
                    row["responseKind"]["kind"]
                    for row in version["resources"]
                    if message_of(api_version, row["responseKind"]["kind"]) is None
                ]
                assert not missing, api_version


CASES: list[dict[str, Any]] = [
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "labels": {"a": "b", "empty": ""}},
        "spec": {
            "backoffLimitPerIndex": 0,
            "maxFailedIndexes": 0,
            "suspend": False,
            "template": {
                "metadata": {},
                "spec": {
                    "containers": [
                        {
                            "name": "c",
                            "securityContext": {"seLinuxOptions": {"level": "s0:c123"}, "runAsUser": 0},
                            "livenessProbe": {"httpGet": {"port": "web", "path": "/"}},
                            "resources": {"limits": {"cpu": "100m"}},
                        }
                    ],
                    "terminationGracePeriodSeconds": 0,
                },
            },
        },
        "status": {},
    },
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com", "creationTimestamp": "2026-01-02T03:04:05Z"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "foos", "kind": "Foo"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": False,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": False,
                            "properties": {
                                "n": {"type": "number", "minimum": 0, "maximum": 1.5, "default": {"a": [1, None]}},
                                "l": {"items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 0},
                                "m": {"additionalProperties": {"type": "string"}},
                                "o": {"additionalProperties": False},
                            },
                        }
                    },
                }
            ],
        },
        "status": {"acceptedNames": {"plural": "", "kind": ""}},
    },
    {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.example.com"},
        "spec": {"groupPriorityMinimum": 0, "versionPriority": 15, "caBundle": "Zm9v", "service": {"port": 443}},
        "status": {},
    },
    {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l"},
        "spec": {"renewTime": "0001-01-01T00:00:02.500000Z", "leaseTransitions": 0, "holderIdentity": ""},
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "p"},
        "spec": {"maxUnavailable": 0, "minAvailable": "50%"},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    },
]


@pytest.mark.parametrize("obj", CASES, ids=lambda obj: obj["kind"])
def test_an_object_survives_both_ways(obj: dict[str, Any]) -> None:
    assert protobuf.decode(protobuf_encoding.encode(obj)) == obj


def test_zeros_that_go_omits_are_left_out() -> None:
    """Go writes every field that is no pointer, also those its JSON encoding leaves out."""
    meta = b"\x0a\x01c\x12\x00\x1a\x00"
    about = b"\x0a\x02v1\x12\x09ConfigMap"
    unknown = b"\x0a" + bytes([len(about)]) + about
    body = b"\x0a" + bytes([len(meta)]) + meta
    data = protobuf.MAGIC + unknown + b"\x12" + bytes([len(body)]) + body
    assert protobuf.decode(data) == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


def test_a_pod_with_selinux_options_is_created_and_answered_in_protobuf(http: httpx.Client) -> None:
    options = {"level": "s0:c123,c456"}
    container = {"name": "c", "image": "nginx:1.27", "securityContext": {"seLinuxOptions": options}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    reply = http.post(f"{HOME}/pods", content=protobuf_encoding.encode(pod), headers={**BINARY, **ONLY_BINARY})
    assert (reply.status_code, reply.headers["content-type"]) == (201, protobuf.MEDIA_TYPE)
    assert protobuf.decode(reply.content) == http.get(f"{HOME}/pods/p").json()
    found = protobuf.decode(http.get(f"{HOME}/pods", headers=ONLY_BINARY).content)
    assert found["kind"] == "PodList"
    assert found["items"][0]["spec"]["containers"][0]["securityContext"]["seLinuxOptions"] == options


def test_a_definition_is_created_and_a_table_is_not_acceptable(http: httpx.Client) -> None:
    names = {"plural": "foos", "kind": "Foo", "singular": "foo"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Cluster", "versions": [version]},
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert http.post(path, content=protobuf_encoding.encode(crd), headers=BINARY).status_code == 201
    table = {"accept": f"{protobuf.MEDIA_TYPE};as=Table;v=v1;g=meta.k8s.io"}
    assert http.get(f"{HOME}/pods", headers=table).status_code == 406


def test_a_watch_in_protobuf_is_length_delimited(http: httpx.Client) -> None:
    http.post(f"{HOME}/configmaps", json={"metadata": {"name": "c"}, "data": {"a": "1"}})
    path = f"{HOME}/configmaps?watch=1&fieldSelector=metadata.name=c"
    with http.stream("GET", path, headers=ONLY_BINARY) as reply:
        assert reply.headers["content-type"] == f"{protobuf.MEDIA_TYPE};stream=watch"
        data = b""
        for piece in reply.iter_raw():
            data += piece
            if len(data) >= 4 and len(data) >= 4 + struct.unpack(">I", data[:4])[0]:
                break
    assert data[4:11] == b"\x0a\x05ADDED"
    assert protobuf.decode(data[data.index(protobuf.MAGIC) :])["data"] == {"a": "1"}


def test_openapi_is_encoded_as_the_published_library_does() -> None:
    recorded = json.loads((Path(__file__).parent / "recorded" / "openapi_v2.json").read_text())
    assert openapi_protobuf.encode(recorded["document"]) == base64.b64decode(recorded["encoded"])


def test_the_whole_of_openapi_version_2_is_served(http: httpx.Client) -> None:
    reply = http.get("/openapi/v2", headers={"accept": OPENAPI_V2})
    assert reply.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert reply.content == openapi_protobuf.encode(http.get("/openapi/v2").json())
