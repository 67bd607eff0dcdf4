"""Requests made up from the served OpenAPI documents: every operation, with bodies of the right and the wrong shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.generation.case import Case

from tests.clusters import RunningApi, bare_world, running

FUZZ = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# What needs more than one request and one response.
_STREAMS = ("/exec", "/attach", "/portforward", "/proxy")


@pytest.fixture(scope="module")
def shared() -> Iterator[RunningApi]:
    with running(bare_world()) as served:
        yield served


@pytest.fixture(scope="module")
def client(shared: RunningApi) -> Iterator[httpx.Client]:
    with shared.http() as opened:
        yield opened


@pytest.fixture(scope="module")
def operations(client: httpx.Client) -> list[Any]:
    found = []
    for entry in client.get("/openapi/v3").json()["paths"].values():
        schema = schemathesis.openapi.from_dict(client.get(entry["serverRelativeURL"]).json())
        found += [result.ok() for result in schema.get_all_operations()]
    return [operation for operation in found if not operation.path.endswith(_STREAMS)]


def _send(client: httpx.Client, case: Case, name: str) -> httpx.Response:
    path = case.path.format(namespace="default", name=name)
    parameters = {key: value for key, value in (case.query or {}).items() if key not in ("watch", "follow")}
    headers, content = {}, None
    if case.media_type is not None:
        kind = "application/json" if case.media_type == "*/*" else case.media_type
        headers["content-type"] = kind
        content = httpx.Request("POST", "http://x", json=_plain(case.body)).content
    return client.request(case.method, path, params=parameters, content=content, headers=headers)


def _plain(body: Any) -> Any:
    return body if isinstance(body, dict | list | str | int | float | bool) else None


@FUZZ
@given(data=st.data())
def test_no_operation_breaks_on_what_its_schema_allows(
    client: httpx.Client, operations: list[Any], data: st.DataObject
) -> None:
    operation = data.draw(st.sampled_from(operations))
    case = data.draw(operation.as_strategy())
    name = data.draw(st.sampled_from(["a", "default", "kube-system", "x" * 300, "Ä"]))
    reply = _send(client, case, name)
    expected = reply.status_code < 500 or reply.status_code in (503, 504)
    assert expected, f"{case.method} {case.path} {case.body!r}: {reply.text}"
    if reply.status_code >= 400 and reply.headers["content-type"] == "application/json":
        assert reply.json()["kind"] == "Status"


def test_the_documents_are_valid_openapi(client: httpx.Client, operations: list[Any]) -> None:
    assert len(operations) > 500
    ids = [operation.definition.raw["operationId"] for operation in operations]
    assert len(ids) == len(set(ids)), "operation ids tell operations apart"
