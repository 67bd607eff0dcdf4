"""What an agent makes on somebody else's cluster goes with it: its way in leads through a proxy that takes notes."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from srearena.cluster import Cluster
from srearena.conductor.episode.agent_access import NAMESPACE, OnCallAccess, grant
from srearena.conductor.shared_cluster import SharedCluster
from srearena.conductor.shared_cluster.recording_proxy import RecordingProxy
from srearena.service.errors import ApiRefused, Unreachable
from srearena.service.kubeconfig import Access, read_kubeconfig
from srearena.service.kubernetes import Kubernetes, Obj
from tests.kubernetes_backend.kubectl_work import LEFT, work
from tests.kubernetes_backend.test_leaving import named, shared_cluster, volume

Agent = tuple[SharedCluster, Path]


@pytest.fixture
def agent(theirs: Cluster, tmp_path: Path) -> Iterator[Agent]:
    """A shared cluster, and the kubeconfig of the agent on it."""
    shared = shared_cluster(theirs, "shop", NAMESPACE)
    try:
        with Kubernetes.of(shared) as ours:
            ours.create(named("Namespace", "v1", "shop"))
            path = grant(shared, ours, OnCallAccess(("shop",)), tmp_path)
        yield shared, path
    finally:
        shared.close()


def priority(name: str) -> Obj:
    return named("PriorityClass", "scheduling.k8s.io/v1", name, value=7)


MADE: dict[str, Obj] = {
    "a priority": priority("agents"),
    "a class of storage": named("StorageClass", "storage.k8s.io/v1", "agents", provisioner="example.com/x"),
    "a volume": volume("agents"),
}


@pytest.mark.parametrize("way", ["create", "apply"])
@pytest.mark.parametrize("what", MADE)
def test_what_an_agent_makes_goes_and_what_a_neighbour_makes_stays(
    agent: Agent, api: Kubernetes, what: str, way: str
) -> None:
    shared, path = agent
    api.create(priority("neighbours"))
    try:
        with Kubernetes(path) as client:
            made = getattr(client, way)(MADE[what])
        resource = api.resource_of(made).name
        assert api.find(resource, "agents") is not None
        shared.close()
        assert api.find(resource, "agents") is None
        assert api.find("priorityclasses", "neighbours") is not None
    finally:
        api.delete("priorityclasses", "neighbours")


def test_a_name_that_the_server_chooses_is_known_too(agent: Agent, api: Kubernetes) -> None:
    shared, path = agent
    drawn = {**priority(""), "metadata": {"generateName": "agents-"}}
    with Kubernetes(path) as client:
        made = client.raw("/apis/scheduling.k8s.io/v1/priorityclasses", method="POST", body=drawn)
        client.raw("/apis/scheduling.k8s.io/v1/priorityclasses?dryRun=All", method="POST", body=drawn)
    assert len(shared.ledger.journal.uids() & {made["metadata"]["uid"]}) == 1
    shared.close()
    assert api.find("priorityclasses", made["metadata"]["name"]) is None


def test_what_lies_in_our_own_namespaces_needs_no_note(agent: Agent) -> None:
    shared, path = agent
    before = shared.ledger.journal.uids()
    with Kubernetes(path) as client:
        client.create(named("ConfigMap", "v1", "notes"), "shop")
    assert shared.ledger.journal.uids() == before


def test_the_door_gives_no_rights(agent: Agent, theirs: Cluster) -> None:
    """The administrator's certificate stays with the administrator."""
    _, path = agent
    assert read_kubeconfig(path).server != read_kubeconfig(theirs.kubeconfig).server
    with Kubernetes(path) as client:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        told = client.raw("/apis/authentication.k8s.io/v1/selfsubjectreviews", method="POST", body=review)
        assert told["status"]["userInfo"]["username"] == f"system:serviceaccount:{NAMESPACE}:oncall"
        with pytest.raises(ApiRefused, match="forbidden"):
            client.create(named("ClusterRole", "rbac.authorization.k8s.io/v1", "more", rules=[]))
    document = yaml.safe_load(path.read_text())
    document["users"][0]["user"] = {}
    path.write_text(yaml.safe_dump(document))
    with Kubernetes(path) as nobody, pytest.raises(ApiRefused):
        nobody.list("pods", "shop")


def test_when_we_leave_the_door_is_shut(agent: Agent) -> None:
    shared, path = agent
    with Kubernetes(path, timeout=5) as client:
        assert client.list("pods", "shop") == []
        shared.close()
        with pytest.raises(Unreachable):
            client.list("pods", "shop")


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_the_real_kubectl_goes_in_and_out(agent: Agent, api: Kubernetes, tmp_path: Path) -> None:
    shared, path = agent
    work(path, tmp_path)
    assert all(api.find(resource, "agents") is not None for resource in LEFT)
    shared.close()
    assert [resource for resource in LEFT if api.find(resource, "agents")] == []


# The proxy by itself, before a server that answers what it is told to.


Reply = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def server() -> Iterator[tuple[list[Reply], str]]:
    replies: list[Reply] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            replies[0](self)

        do_GET = do_PATCH = do_POST

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = Thread(target=made.serve_forever)
        thread.start()
        yield replies, f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


def ask(proxy: RecordingProxy, head: str, body: bytes = b"") -> bytes:
    """What a client gets that says nothing more, and believes every certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    port = int(proxy.server.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        context.wrap_socket(plain) as line,
    ):
        line.sendall(f"{head}\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        data = b""
        while piece := line.recv(4096):
            data += piece
        return data


OBJECT = {"kind": "PriorityClass", "metadata": {"name": "x", "uid": "u-1"}}
POST = "POST /apis/scheduling.k8s.io/v1/priorityclasses HTTP/1.1"
APPLY = "PATCH /api/v1/namespaces/default/configmaps/x HTTP/1.1\r\ncontent-type: application/apply-patch+yaml"


def in_chunks(status: int) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        body = json.dumps(OBJECT).encode()
        handler.send_response(status)
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for piece in (body[:7], body[7:30], body[30:], b""):
            handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    return reply


@pytest.mark.parametrize(
    ("head", "status", "notes"),
    [
        (POST, 201, 1),
        (POST, 200, 0),
        (POST, 409, 0),
        (POST.replace(" HTTP", "?dryRun=All HTTP"), 201, 0),
        (POST.replace("/apis", "/k8s/clusters/one/apis"), 201, 1),
        (f"{POST}\r\nupgrade: nonsense\r\nconnection: upgrade", 201, 1),
        (f"{POST}\r\nexpect: 100-continue", 201, 1),
        (APPLY, 201, 1),
        (APPLY, 200, 0),
        (APPLY.replace("apply-patch+yaml", "merge-patch+json"), 200, 0),
        ("POST /api/v1/namespaces/default/pods/x/eviction HTTP/1.1", 201, 0),
        ("POST /api/v1/namespaces/default/services/x:80/proxy/orders HTTP/1.1", 201, 0),
        ("GET /api/v1/pods HTTP/1.1", 200, 0),
    ],
)
def test_only_what_came_into_being_is_noted(
    server: tuple[list[Reply], str], head: str, status: int, notes: int
) -> None:
    replies, address = server
    recorded: list[Any] = []
    replies.append(in_chunks(status))
    proxy = RecordingProxy(Access(address, {}, None, "default"), recorded.append)
    try:
        got = ask(proxy, head, b"{}")
    finally:
        proxy.close()
    assert f" {status} ".encode() in got
    assert got.endswith(b"\r\n0\r\n\r\n"), "to the last chunk"
    assert recorded == [OBJECT] * notes


def test_the_note_is_taken_before_the_answer_is_given(server: tuple[list[Reply], str]) -> None:
    replies, address = server
    replies.append(in_chunks(201))

    def broken(obj: Any) -> None:
        raise OSError("no space left on device")

    proxy = RecordingProxy(Access(address, {}, None, "default"), broken)
    try:
        assert ask(proxy, POST, b"{}") == b""
    finally:
        proxy.close()


def test_an_answer_without_end_comes_as_it_comes(server: tuple[list[Reply], str]) -> None:
    """As with a watch."""
    replies, address = server
    seen: list[float] = []

    def slowly(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"first\n")
        handler.wfile.flush()
        while not seen:
            time.sleep(0.01)
        handler.wfile.write(b"second\n")
        handler.close_connection = True

    replies.append(slowly)
    proxy = RecordingProxy(Access(address, {}, None, "default"), lambda obj: None)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        port = int(proxy.server.rpartition(":")[2])
        with (
            socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
            context.wrap_socket(plain) as line,
        ):
            line.sendall(b"GET /api/v1/pods?watch=true HTTP/1.1\r\nhost: x\r\n\r\n")
            data = b""
            while b"first" not in data:
                data += line.recv(4096)
            seen.append(1.0)
            while piece := line.recv(4096):
                data += piece
        assert data.endswith(b"first\nsecond\n")
    finally:
        seen.append(1.0)
        proxy.close()


def test_what_cannot_be_passed_on_is_said(server: tuple[list[Reply], str]) -> None:
    _, address = server
    gone = RecordingProxy(Access("http://127.0.0.1:1", {}, None, "default"), lambda obj: None)
    open_one = RecordingProxy(Access(address, {}, None, "default"), lambda obj: None)
    try:
        assert b"the API server of the cluster does not respond" in ask(gone, "GET /version HTTP/1.1")
        assert ask(open_one, "nonsense") == b""
    finally:
        gone.close()
        open_one.close()
