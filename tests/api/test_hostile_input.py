"""Whatever arrives on the wire is answered with a proper refusal: never a 500, never a hang, never a leak."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.api import bodies, connections, protobuf
from srearena.cluster.embedded.registry.errors import ApiError
from tests.clusters import SUPERUSER, RunningApi, bare_world, running

HOME = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def shared() -> Iterator[RunningApi]:
    """One server for many blows: that it still answers at the end is part of the test."""
    with running(bare_world()) as served:
        yield served
        with served.http() as client:
            assert client.get("/readyz").text == "ok"


@pytest.fixture(scope="module")
def victim(shared: RunningApi) -> Iterator[httpx.Client]:
    with shared.http() as client:
        yield client


def _refused(reply: httpx.Response, *codes: int) -> dict[str, Any]:
    assert reply.status_code in codes, f"{reply.status_code}: {reply.text[:500]}"
    status = reply.json()
    assert status["kind"] == "Status" and status["status"] == "Failure"
    assert status["code"] == reply.status_code and status["message"]
    return status


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b'{"metadata": {"name": "a"}',
        b'{"metadata": {"name": "\xff\xfe"}}',
        b'\xff\xfe{"a":1}',
        b"{" * 100_000,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
        b'{"metadata":{"name":"a"},"data":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}",
        b"[" * 2_000 + b"]" * 2_000,
        b'{"metadata": {"name": 1}}',
        b'{"metadata": {"name": {"a": "b"}}}',
        b'{"metadata": {"name": "a", "labels": ["x"]}}',
        b'{"metadata": {"name": "a", "labels": {"a": 1}}}',
        b'{"metadata": {"name": "a", "annotations": {"a": null}}, "data": []}',
        b'{"metadata": {"name": "a", "ownerReferences": [1]}}',
        b'{"metadata": {"name": "a", "ownerReferences": [{}]}}',
        b'{"metadata": {"name": "a", "finalizers": "x"}}',
        b'{"metadata": {"name": "a", "finalizers": [{}]}}',
        b'{"metadata": {"name": "a", "managedFields": [1]}}',
        b'{"metadata": {"name": "a", "deletionTimestamp": 1}}',
        b'{"metadata": {"name": "../../etc"}}',
        b'{"metadata": {"generateName": {}}}',
        b'{"apiVersion": 1, "kind": [], "metadata": {"name": "a"}}',
        b'{"metadata": {"name": "a"}, "data": {"x": 1e999}}',
        b'{"metadata": {"name": "a"}, "immutable": "maybe"}',
    ],
)
def test_bodies_that_are_no_objects_are_refused(victim: httpx.Client, body: bytes) -> None:
    reply = victim.post(HOME, content=body, headers={"content-type": "application/json"})
    _refused(reply, 400, 422)


@pytest.mark.parametrize(
    "body",
    [
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "\n".join(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]" for n in range(12)),
        "a: &a {b: *a}",
        "? [complex, key]\n: value",
        "!!python/object/apply:os.system [ls]",
        "a: .nan",
        "\tbad",
        "- " * 5_000 + "x",
        "{" * 5_000,
        "[" * 200_000,
        "%YAML 9.9\n---\na: b",
        "a: b\n---\nc: d",
    ],
)
def test_yaml_that_is_a_trap_is_refused(victim: httpx.Client, body: str) -> None:
    reply = victim.post(HOME, content=body.encode(), headers={"content-type": "application/yaml"})
    _refused(reply, 400, 422)
    headers = {"content-type": "application/apply-patch+yaml"}
    reply = victim.patch(f"{HOME}/a?fieldManager=x", content=body.encode(), headers=headers)
    _refused(reply, 400, 422)


def test_bodies_are_limited(victim: httpx.Client) -> None:
    big = json.dumps({"metadata": {"name": "big"}, "data": {"x": "y" * 4_000_000}}).encode()
    status = _refused(victim.post(HOME, content=big), 413)
    assert status["message"] == "Request entity too large: limit is 3145728"

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(big), 65536):
            yield big[start : start + 65536]

    try:
        _refused(victim.post(HOME, content=chunks()), 413)
    except httpx.TransportError:
        return  # it was refused while still being sent


@pytest.mark.parametrize("kind", ["text/html", "application/cbor", "multipart/form-data", "x", "application/json5"])
def test_bodies_of_other_kinds_are_refused(victim: httpx.Client, kind: str) -> None:
    status = _refused(victim.post(HOME, content=b"{}", headers={"content-type": kind}), 415)
    assert "accepted media types include: application/json" in status["message"]


def test_urls_of_all_sorts(victim: httpx.Client) -> None:
    for path in (
        f"{HOME}/%00",
        f"{HOME}/%ff%fe",
        f"{HOME}/..%2f..%2fsecrets",
        f"{HOME}/{'a' * 5000}",
        "/api/v1/namespaces/%20/configmaps/x",
        "/api/v1//configmaps",
        "/api//",
        "/apis///",
        "//",
        "/api/v1/watch",
        "/api/v1/proxy",
        f"{HOME}/a/b/c/d/e",
        "/api/v1/namespaces/default/pods/a:b:c:d/proxy/x",
    ):
        assert victim.get(path).status_code in (200, 400, 404, 405), path
    for query in ("?" + "&".join(f"a{n}=b" for n in range(2000)), "?limit=9" + "9" * 100, "?%zz=1"):
        assert victim.get(HOME + query).status_code in (200, 400), query
    for method in ("TRACE", "OPTIONS", "CONNECT", "PROPFIND", "BREW"):
        try:
            assert victim.request(method, HOME).status_code in (400, 405)
        except httpx.TransportError:
            continue


def _raw(api: RunningApi, data: bytes, *, wait: float = 5) -> bytes:
    """Send bytes as they are and read until the server closes, or for a while."""
    context = ssl.create_default_context(cafile=str(api.ca))
    with (
        socket.create_connection(("127.0.0.1", api.server.port)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as wrapped,
    ):
        wrapped.settimeout(wait)
        received = b""
        try:
            wrapped.sendall(data)
            while piece := wrapped.recv(65536):
                received += piece
        except (TimeoutError, OSError):
            pass
        return received


def test_what_is_not_http_is_told_so(shared: RunningApi) -> None:
    assert b"400" in _raw(shared, b"\x00\x01\x02 nonsense\r\n\r\n").splitlines()[0]
    assert b"400" in _raw(shared, b"GET / HTTP/9.9\r\n\r\n").splitlines()[0]
    assert b"431" in _raw(shared, b"GET / HTTP/1.1\r\nx: " + b"y" * 200_000).splitlines()[0]
    many = b"GET / HTTP/1.1\r\n" + b"".join(b"h%d: v\r\n" % n for n in range(20_000))
    assert b"431" in _raw(shared, many).splitlines()[0]


def test_plain_http_on_the_tls_port_is_dropped(shared: RunningApi) -> None:
    with socket.create_connection(("127.0.0.1", shared.server.port), timeout=5) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        try:
            assert plain.recv(100)[:4] != b"HTTP"
        except OSError:
            return


def test_a_client_that_dawdles_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.3)
    with running(bare_world()) as api:
        token = api.call(lambda: api.server.credentials.token(SUPERUSER)).encode()
        head = b"POST " + HOME.encode() + b" HTTP/1.1\r\nauthorization: Bearer " + token
        for beginning in (b"", b"GET / HT", head + b"\r\ncontent-length: 100\r\n\r\n{"):
            assert _raw(api, beginning, wait=10) == b""

        async def idle() -> bool:
            for _ in range(100):
                if not api.server.busy:
                    return True
                await asyncio.sleep(0.02)
            return False

        assert api.wait(idle())


def test_a_client_that_hangs_up_early_leaves_nothing_behind(shared: RunningApi) -> None:
    token = shared.call(lambda: shared.server.credentials.token(SUPERUSER))

    async def rush() -> None:
        context = ssl.create_default_context(cafile=str(shared.ca))

        async def one(number: int) -> None:
            _, writer = await asyncio.open_connection("127.0.0.1", shared.server.port, ssl=context)
            path = (HOME, f"{HOME}?watch=true", "/openapi/v2", "/nothing")[number % 4]
            writer.write(f"GET {path} HTTP/1.1\r\nauthorization: Bearer {token}\r\n\r\n".encode())
            writer.transport.abort()

        await asyncio.gather(*(one(number) for number in range(100)))

    asyncio.run(rush())

    async def idle() -> bool:
        for _ in range(200):
            if not shared.server.busy and not shared.watcher_count:
                return True
            await asyncio.sleep(0.02)
        return False

    assert shared.wait(idle())


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
RESOURCES = [
    ("", "v1", "configmaps"),
    ("", "v1", "pods"),
    ("", "v1", "services"),
    ("", "v1", "serviceaccounts"),
    ("", "v1", "secrets"),
    ("", "v1", "events"),
    ("", "v1", "persistentvolumeclaims"),
    ("", "v1", "resourcequotas"),
    ("", "v1", "limitranges"),
    ("", "v1", "endpoints"),
    ("", "v1", "replicationcontrollers"),
    ("", "v1", "podtemplates"),
    ("apps", "v1", "deployments"),
    ("apps", "v1", "daemonsets"),
    ("apps", "v1", "statefulsets"),
    ("apps", "v1", "replicasets"),
    ("batch", "v1", "jobs"),
    ("batch", "v1", "cronjobs"),
    ("autoscaling", "v2", "horizontalpodautoscalers"),
    ("autoscaling", "v1", "horizontalpodautoscalers"),
    ("networking.k8s.io", "v1", "ingresses"),
    ("networking.k8s.io", "v1", "networkpolicies"),
    ("policy", "v1", "poddisruptionbudgets"),
    ("rbac.authorization.k8s.io", "v1", "roles"),
    ("rbac.authorization.k8s.io", "v1", "rolebindings"),
    ("coordination.k8s.io", "v1", "leases"),
    ("discovery.k8s.io", "v1", "endpointslices"),
    ("events.k8s.io", "v1", "events"),
    ("authorization.k8s.io", "v1", "localsubjectaccessreviews"),
]


def _path(resource: tuple[str, str, str]) -> str:
    group, version, plural = resource
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return f"{root}/namespaces/default/{plural}"


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    resource=st.sampled_from(RESOURCES),
    spec=JSON_VALUES,
    extra=st.dictionaries(st.text(max_size=8), JSON_VALUES, max_size=2),
)
def test_objects_of_any_shape_never_break_the_server(
    victim: httpx.Client, resource: tuple[str, str, str], spec: Any, extra: dict[str, Any]
) -> None:
    body = {"metadata": {"generateName": "fuzz-"}, "spec": spec, **extra}
    reply = victim.post(_path(resource), json=body)
    assert reply.status_code < 500, reply.text
    if reply.status_code == 201 and (name := reply.json().get("metadata", {}).get("name")):
        for accept in ("application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml"):
            assert victim.get(f"{_path(resource)}/{name}", headers={"accept": accept}).status_code < 500
        assert victim.delete(f"{_path(resource)}/{name}").status_code < 500


PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from(PATCHES), change=JSON_VALUES, field=st.sampled_from(["", "metadata", "spec", "status", "data"])
)
def test_patches_of_any_shape_never_break_the_server(victim: httpx.Client, kind: str, change: Any, field: str) -> None:
    path = f"{_path(('apps', 'v1', 'deployments'))}/target"
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    body = {"metadata": {"name": "target"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    victim.post(_path(("apps", "v1", "deployments")), json=body)
    for suffix in ("", "/status", "/scale"):
        content = json.dumps({field: change} if field else change).encode()
        reply = victim.patch(f"{path}{suffix}?fieldManager=fuzz", content=content, headers={"content-type": kind})
        assert reply.status_code < 500, reply.text


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(
        "labelSelector fieldSelector limit continue resourceVersion resourceVersionMatch timeoutSeconds pretty "
        "sendInitialEvents includeObject dryRun fieldManager fieldValidation gracePeriodSeconds "
        "propagationPolicy".split()
    ),
    value=st.text(max_size=30),
    method=st.sampled_from(["GET", "DELETE", "POST"]),
)
def test_parameters_of_any_value_never_break_the_server(
    victim: httpx.Client, name: str, value: str, method: str
) -> None:
    reply = victim.request(method, _path(("", "v1", "podtemplates")), params={name: value})
    assert reply.status_code < 500 or reply.status_code == 504, reply.text


@given(st.binary(max_size=300))
def test_any_bytes_are_a_protobuf_object_or_a_refusal(data: bytes) -> None:
    for body in (data, b"k8s\x00" + data, b"k8s\x00\n\x09\n\x02v1\x12\x03Pod\x12" + bytes((len(data) % 128,)) + data):
        try:
            assert isinstance(protobuf.decode(body), dict)
        except ApiError as refusal:
            assert refusal.code == 400


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_yaml_or_a_refusal(data: bytes) -> None:
    try:
        json.dumps(bodies.decode_yaml(data), allow_nan=False)
    except ApiError as refusal:
        assert refusal.code == 400
