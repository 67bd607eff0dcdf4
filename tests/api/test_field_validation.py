"""Unknown, repeated and mistyped fields: refused, warned about or passed over, as the client asked."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

HOME = "/apis/apps/v1/namespaces/default/deployments"
LABELS = {"app": "web"}


def _deployment(name: str = "web", **container: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "a", "image": "nginx:1.27", **container}]},
    }
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": LABELS}, "template": template}}


def test_strict_refuses_unknown_fields(http: httpx.Client) -> None:
    reply = http.post(f"{HOME}?fieldValidation=Strict", json=_deployment(imagePullPolices="Always"))
    assert reply.status_code == 400
    assert reply.json()["message"] == (
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
        'unknown field "spec.template.spec.containers[0].imagePullPolices"'
    )


@pytest.mark.parametrize("query", ["", "?fieldValidation=Warn"])
def test_warn_stores_without_them_and_says_so(http: httpx.Client, query: str) -> None:
    reply = http.post(f"{HOME}{query}", json=_deployment(ports=[{"containerPort": 80, "protocl": "TCP"}], colour="red"))
    assert reply.status_code == 201
    place = "spec.template.spec.containers[0]"
    assert sorted(reply.headers.get_list("warning")) == [
        f'299 - "unknown field \\"{place}.colour\\""',
        f'299 - "unknown field \\"{place}.ports[0].protocl\\""',
    ]
    assert "colour" not in reply.json()["spec"]["template"]["spec"]["containers"][0]


def test_ignore_says_nothing(http: httpx.Client) -> None:
    reply = http.post(f"{HOME}?fieldValidation=Ignore", json=_deployment(colour="red"))
    assert reply.status_code == 201 and "warning" not in reply.headers


def test_a_field_given_twice_is_told_as_such(http: httpx.Client) -> None:
    text = b'{"metadata":{"name":"a","name":"b"},"data":{"k":"1","k":"2"}}'
    path = "/api/v1/namespaces/default/configmaps"
    headers = {"content-type": "application/json"}
    strict = http.post(f"{path}?fieldValidation=Strict", content=text, headers=headers)
    assert strict.status_code == 400
    assert (
        'strict decoding error: duplicate field "metadata.name", duplicate field "data.k"' in strict.json()["message"]
    )
    reply = http.post(path, content=text, headers=headers)
    assert reply.json()["metadata"]["name"] == "b" and reply.json()["data"] == {"k": "2"}
    assert len(reply.headers.get_list("warning")) == 2


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"replicas": "three"},
            "string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"replicas": 1.5},
            "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        ({"selector": []}, "array into Go struct field DeploymentSpec.spec.selector"),
        ({"paused": "yes"}, "string into Go struct field DeploymentSpec.spec.paused of type bool"),
    ],
)
@pytest.mark.parametrize("validation", ["Strict", "Ignore"])
def test_a_wrong_type_is_always_refused(http: httpx.Client, change: dict[str, Any], text: str, validation: str) -> None:
    body = _deployment()
    body["spec"] |= change
    reply = http.post(f"{HOME}?fieldValidation={validation}", json=body)
    assert reply.status_code == 400
    assert f"json: cannot unmarshal {text}" in reply.json()["message"]


def test_patches_are_validated_too(http: httpx.Client) -> None:
    http.post(HOME, json=_deployment()).raise_for_status()
    merge = {"content-type": "application/merge-patch+json"}
    change = {"spec": {"replica": 3}}
    strict = http.patch(f"{HOME}/web?fieldValidation=Strict", json=change, headers=merge)
    assert strict.status_code == 422
    assert 'strict decoding error: unknown field "spec.replica"' in strict.json()["message"]
    warned = http.patch(f"{HOME}/web", json=change, headers=merge)
    assert warned.status_code == 200 and warned.headers["warning"] == '299 - "unknown field \\"spec.replica\\""'
    odd = [{"op": "replace", "path": "/spec/replicas", "value": 2, "why": "because"}]
    kind = {"content-type": "application/json-patch+json"}
    assert http.patch(f"{HOME}/web?fieldValidation=Strict", json=odd, headers=kind).status_code == 422
    wrong = http.patch(f"{HOME}/web", json={"spec": {"replicas": "x"}}, headers=merge)
    assert wrong.status_code == 422


def test_an_unknown_way_of_validating_is_refused(http: httpx.Client) -> None:
    reply = http.post(f"{HOME}?fieldValidation=Sometimes", json=_deployment())
    assert reply.status_code == 422
    assert 'fieldValidation: Unsupported value: "Sometimes"' in reply.json()["message"]


def test_the_field_manager_is_the_program_unless_it_says_otherwise(http: httpx.Client) -> None:
    def manager(**options: Any) -> str:
        response = http.post(
            "/api/v1/namespaces/default/configmaps",
            json={"metadata": {"generateName": "m-"}, "data": {"a": "b"}},
            **options,
        )
        return str(response.json()["metadata"]["managedFields"][0]["manager"])

    assert manager(headers={"user-agent": "my-tool/v1.2 (linux)"}) == "my-tool"
    assert manager(params={"fieldManager": "somebody"}) == "somebody"
    reply = http.post(HOME, json=_deployment(), params={"fieldManager": "x" * 129})
    assert reply.status_code == 422 and "may not be more than 128 bytes" in reply.json()["message"]
    reply = http.post(HOME, json=_deployment(), params={"fieldManager": "a\nb"})
    assert reply.status_code == 422 and "should only contain printable characters" in reply.json()["message"]
