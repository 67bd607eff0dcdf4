"""port-forward in both dialects, and the proxy subresources."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import websocket
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.api.spdy import (
    DICTIONARY,
    GOAWAY,
    DataReceived,
    Event,
    GoneAway,
    Pinged,
    SpdyConnection,
    SpdyError,
    StreamOpened,
    StreamReset,
)
from tests.api.test_remote_commands import socket, transport
from tests.clusters import RunningApi

__all__ = ("transport",)
FORWARD = "/api/v1/namespaces/default/pods/talker/portforward"
TUNNEL = "SPDY/3.1+portforward.k8s.io"
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Tunnel:
    """kubectl's side of the tunnel."""

    def __init__(self, opened: websocket.WebSocket) -> None:
        self._socket = opened
        self.spdy = SpdyConnection()
        self._waiting: list[Event] = []

    def send(self, data: bytes) -> None:
        self._socket.send_binary(data)

    def next(self) -> Event:
        while not self._waiting:
            opcode, data = self._socket.recv_data()
            assert opcode == websocket.ABNF.OPCODE_BINARY
            self._waiting += self.spdy.receive(data)
        return self._waiting.pop(0)

    def open(self, number: int, port: int) -> tuple[int, int]:
        error, data = 4 * number + 1, 4 * number + 3
        headers = {"port": str(port), "requestID": str(number)}
        self.send(self.spdy.open(error, {"streamType": "error", **headers}))
        self.send(self.spdy.data(error, b"", fin=True))
        self.send(self.spdy.open(data, {"streamType": "data", **headers}))
        return error, data

    def until_closed(self, *streams: int) -> dict[int, bytes]:
        received = dict.fromkeys(streams, b"")
        still_open = set(streams)
        while still_open:
            event = self.next()
            assert isinstance(event, DataReceived)
            received[event.stream] += event.data
            if event.fin:
                still_open.discard(event.stream)
        return received


@contextmanager
def _tunnel(api: RunningApi) -> Iterator[Tunnel]:
    with socket(api, FORWARD, TUNNEL) as opened:
        assert opened.getsubprotocol() == TUNNEL.lower() or opened.getsubprotocol() == TUNNEL
        yield Tunnel(opened)


def test_a_request_through_the_tunnel(pods: RunningApi) -> None:
    with _tunnel(pods) as tunnel:
        error, data = tunnel.open(0, 80)
        tunnel.send(tunnel.spdy.data(data, REQUEST))
        received = tunnel.until_closed(error, data)
    assert received[data].startswith(b"HTTP/1.1 200") and received[error] == b""


def test_several_connections_share_a_tunnel(pods: RunningApi) -> None:
    with _tunnel(pods) as tunnel:
        pairs = [tunnel.open(number, 80) for number in range(5)]
        for _, data in reversed(pairs):
            tunnel.send(tunnel.spdy.data(data, REQUEST))
        received = tunnel.until_closed(*(stream for pair in pairs for stream in pair))
    assert all(received[data].startswith(b"HTTP/1.1 200") for _, data in pairs)


def test_nobody_listening_is_told_on_the_error_stream(pods: RunningApi) -> None:
    with _tunnel(pods) as tunnel:
        error, data = tunnel.open(0, 9)
        received = tunnel.until_closed(error, data)
    assert received[data] == b"" and b"connection refused" in received[error]


def test_pings_are_answered_and_nonsense_is_reset(pods: RunningApi) -> None:
    with _tunnel(pods) as tunnel:
        tunnel.send(tunnel.spdy.ping(7))
        assert tunnel.next() == Pinged(7)
        tunnel.send(tunnel.spdy.open(1, {"streamType": "nonsense", "port": "80"}))
        assert tunnel.next() == StreamReset(1)
        tunnel.send(tunnel.spdy.open(3, {"streamType": "data", "port": "99999"}))
        assert tunnel.next() == StreamReset(3)


def test_rubbish_in_the_tunnel_closes_it(pods: RunningApi) -> None:
    with _tunnel(pods) as tunnel:
        tunnel.send(b"\x80\x07\x00\x01\x00\x00\x00\x04abcd")
        opcode, _ = tunnel._socket.recv_data()
        assert opcode == websocket.ABNF.OPCODE_CLOSE


def test_the_older_dialect_has_two_channels_a_port(pods: RunningApi) -> None:
    with socket(pods, f"{FORWARD}?ports=80&ports=9", "v4.channel.k8s.io") as opened:
        greetings = {opened.recv() for _ in range(4)}
        assert greetings == {b"\x00P\x00", b"\x01P\x00", b"\x02\x09\x00", b"\x03\x09\x00"}
        opened.send_binary(b"\x00" + REQUEST)
        received: dict[int, bytes] = {}
        while not (received.get(0, b"").startswith(b"HTTP/1.1 200") and received.get(3)):
            message = opened.recv()
            received[message[0]] = received.get(message[0], b"") + message[1:]
        assert b"connection refused" in received[3]
    for query in ("", "ports=0", "ports=x", "ports=70000"):
        with (
            pytest.raises(websocket.WebSocketBadStatusException) as refused,
            socket(pods, f"{FORWARD}?{query}", "v4.channel.k8s.io"),
        ):
            pass
        assert refused.value.status_code == 400


@pytest.mark.kubectl
@pytest.mark.usefixtures("transport")
def test_kubectl_port_forward(pods: RunningApi) -> None:
    command = ["kubectl", f"--kubeconfig={pods.kubeconfig}", "port-forward", "pod/talker", ":80"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+) -> 80", process.stdout.readline())
        assert found
        for _ in range(3):
            assert httpx.get(f"http://127.0.0.1:{found[1]}/").status_code == 200
        process.terminate()


def test_the_proxy_reaches_pods_and_services(pods: RunningApi) -> None:
    with pods.http() as client:
        home = "/api/v1/namespaces/default"
        assert client.get(f"{home}/pods/talker:80/proxy/").status_code == 200
        assert client.get(f"{home}/pods/talker:http/proxy/").status_code == 200
        assert "nginx" in client.options(f"{home}/pods/talker:80/proxy").text, "the server itself decides about methods"
        moved = client.get(f"{home}/pods/talker:80/proxy?a=b")
        assert (moved.status_code, moved.headers["location"]) == (301, f"{home}/pods/talker:80/proxy/?a=b")
        refused = client.get(f"{home}/pods/talker:81/proxy/some/path")
        assert refused.status_code == 503
        assert re.fullmatch(
            r"error trying to reach service: dial tcp [\d.]+:81: connect: connection refused", refused.json()["message"]
        )
        service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "talker"}, "ports": [{"port": 80}]}}
        client.post(f"{home}/services", json=service).raise_for_status()
        empty = client.get(f"{home}/services/web/proxy/")
        assert (empty.status_code, empty.json()["message"]) == (503, 'no endpoints available for service "web"')
        address = client.get(f"{home}/pods/talker").json()["status"]["podIP"]
        piece = {
            "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address], "targetRef": {"kind": "Pod", "name": "talker"}}],
        }
        client.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", json=piece).raise_for_status()
        assert client.get(f"{home}/services/web:80/proxy/").status_code == 200
        assert client.get(f"{home}/services/web:99/proxy/").status_code == 503
        assert client.get("/api/v1/nodes/worker/proxy/healthz").text == "ok"
        assert client.get("/api/v1/nodes/ghost/proxy/healthz").status_code == 404


def test_the_dictionary_is_the_protocols_own() -> None:
    assert len(DICTIONARY) == 1423


HEADERS = st.dictionaries(
    st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20), st.text("abc 123/:", max_size=40), max_size=5
)
FRAMES = st.one_of(
    st.tuples(st.just("open"), st.integers(1, 2**31 - 1), HEADERS, st.booleans()),
    st.tuples(st.just("data"), st.integers(1, 2**31 - 1), st.binary(max_size=200), st.booleans()),
    st.tuples(st.just("reset"), st.integers(1, 2**31 - 1)),
    st.tuples(st.just("ping"), st.integers(0, 2**32 - 1)),
    st.tuples(st.just("bye"), st.integers(0, 2**31 - 1)),
)


@given(frames=st.lists(FRAMES, max_size=10), cut=st.integers(1, 50))
def test_what_one_side_writes_the_other_reads_however_it_is_cut(frames: list[tuple], cut: int) -> None:
    writer, reader = SpdyConnection(), SpdyConnection()
    written, expected = b"", []
    for frame in frames:
        match frame:
            case ("open", stream, headers, fin):
                written += writer.open(stream, headers, fin=fin)
                expected.append(StreamOpened(stream, headers, fin))
            case ("data", stream, data, fin):
                written += writer.data(stream, data, fin=fin)
                expected.append(DataReceived(stream, data, fin))
            case ("reset", stream):
                written += writer.reset(stream)
                expected.append(StreamReset(stream))
            case ("ping", number):
                written += writer.ping(number)
                expected.append(Pinged(number))
            case ("bye", stream):
                written += struct.pack(">HHIII", 0x8003, GOAWAY, 8, stream, 0)
                expected.append(GoneAway())
    events = [event for at in range(0, len(written), cut) for event in reader.receive(written[at : at + cut])]
    assert events == expected


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_an_error(data: bytes) -> None:
    try:
        events = SpdyConnection().receive(data)
    except SpdyError as refusal:
        assert str(refusal)
        return
    assert len(events) <= len(data) // 8, "a frame has a head of eight bytes"


def test_the_proxy_to_a_service_takes_any_of_its_ready_pods(pods: RunningApi) -> None:
    core, slices = "/api/v1/namespaces/default", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    container = {"name": "main", "image": "registry.k8s.io/e2e-test-images/agnhost:2.53", "args": ["netexec"]}
    names = ["one", "two", "unready"]
    with pods.http() as client:
        for name in names:
            spec = {"nodeName": "worker", "containers": [container]}
            client.post(f"{core}/pods", json={"metadata": {"name": name}, "spec": spec}).raise_for_status()
        service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80, "targetPort": 8080}]}}
        client.post(f"{core}/services", json=service).raise_for_status()
        pods.advance(20)
        piece = {
            "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
            "endpoints": [
                {
                    "addresses": [client.get(f"{core}/pods/{name}").json()["status"]["podIP"]],
                    "conditions": {"ready": name != "unready"},
                    "targetRef": {"kind": "Pod", "name": name},
                }
                for name in names
            ],
        }
        client.post(slices, json=piece).raise_for_status()
        answers = {client.get(f"{core}/services/web/proxy/hostname").text for _ in range(20)}
    assert answers == {"one", "two"}
