"""Connections that a client upgrades to SPDY: what agrees with the protocol, and what does not."""

from __future__ import annotations

import json
import ssl
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from socket import create_connection

import pytest

from srearena.cluster.embedded.api import spdy_sockets
from srearena.cluster.embedded.api.spdy import DataReceived, Event, GoneAway, Pinged, SpdyConnection, StreamReset
from tests.clusters import SUPERUSER, RunningApi

POD = "/api/v1/namespaces/default/pods/talker"
CAT = f"{POD}/exec?container=main&command=cat&stdin=1&stdout=1"
V1, V4 = "channel.k8s.io", "v4.channel.k8s.io"


class Client:
    """A client's side of a connection."""

    def __init__(self, opened: ssl.SSLSocket) -> None:
        self.socket = opened
        self.spdy = SpdyConnection()
        self.head = ""
        self._waiting: list[Event] = []

    def upgrade(self, api: RunningApi, path: str, *protocols: str, token: str = "") -> str:
        """Ask for SPDY; the first line of the answer."""
        token = token or api.call(lambda: api.server.credentials.token(SUPERUSER))
        lines = [f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", "Content-Length: 0"]
        lines += ["Connection: Upgrade", "Upgrade: SPDY/3.1"]
        lines += [f"X-Stream-Protocol-Version: {protocol}" for protocol in protocols]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.socket.recv(65536)
        head, _, rest = answer.partition(b"\r\n\r\n")
        self.head = head.decode()
        if " 101 " in self.head:
            self._waiting += self.spdy.receive(rest)
        return self.head.partition("\r\n")[0]

    def open(self, *kinds: str) -> None:
        """One stream for each kind, numbered 1, 3, 5 ..."""
        for number, kind in enumerate(kinds):
            self.socket.sendall(self.spdy.open(2 * number + 1, {"streamType": kind}))

    def events(self) -> Iterator[Event]:
        """What comes until the server closes the connection."""
        yield from self._waiting
        while data := self.socket.recv(65536):
            yield from self.spdy.receive(data)


def texts_of(events: Iterable[Event]) -> dict[int, bytes]:
    """What each stream carried."""
    texts: dict[int, bytes] = {}
    for event in events:
        if isinstance(event, DataReceived):
            texts[event.stream] = texts.get(event.stream, b"") + event.data
    return texts


@contextmanager
def client(api: RunningApi) -> Iterator[Client]:
    context = ssl.create_default_context(cafile=str(api.ca))
    plain = create_connection(("127.0.0.1", api.server.port), timeout=20)
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as opened:
        yield Client(opened)


def test_each_kind_of_output_has_its_stream(pods: RunningApi) -> None:
    script = "echo%20out;echo%20err%3E%262;exit%203"
    path = f"{POD}/exec?container=main&command=sh&command=-c&command={script}&stdout=1&stderr=1"
    with client(pods) as one:
        assert one.upgrade(pods, path, "v9.channel.k8s.io", V4) == "HTTP/1.1 101 Switching Protocols"
        assert f"X-Stream-Protocol-Version: {V4}" in one.head
        one.open("error", "stdout", "stderr")
        events = list(one.events())
    assert isinstance(events[-1], GoneAway)
    texts = texts_of(events)
    assert (texts[3], texts[5]) == (b"out\n", b"err\n")
    assert json.loads(texts[1])["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    assert {e.stream for e in events if isinstance(e, DataReceived) and e.fin} == {1, 3, 5}


def test_the_end_of_a_stream_is_the_end_of_the_input(pods: RunningApi) -> None:
    with client(pods) as one:
        one.upgrade(pods, CAT)
        # Data may come before all streams are open; without a protocol there is no status.
        one.open("stdin")
        one.socket.sendall(one.spdy.data(1, b"early "))
        one.socket.sendall(one.spdy.open(3, {"streamType": "stdout"}) + one.spdy.open(5, {"streamType": "error"}))
        one.socket.sendall(one.spdy.data(1, b"late", fin=True))
        assert texts_of(one.events()) == {3: b"early late", 5: b"", 1: b""}


def test_pings_are_answered_and_unknown_streams_reset(pods: RunningApi) -> None:
    with client(pods) as one:
        one.upgrade(pods, CAT, V4)
        one.open("error", "stdin", "stdout", "nonsense", "stdin")
        one.socket.sendall(one.spdy.ping(5) + one.spdy.ping(6) + one.spdy.data(3, b"", fin=True))
        events = list(one.events())
    assert [event.number for event in events if isinstance(event, Pinged)] == [5]
    assert [event.stream for event in events if isinstance(event, StreamReset)] == [7, 9]


def test_no_common_protocol_is_refused(pods: RunningApi) -> None:
    with client(pods) as one:
        assert " 400 " in one.upgrade(pods, CAT, "v9.channel.k8s.io")
    with client(pods) as one:
        assert " 400 " in one.upgrade(pods, f"{POD}/portforward?ports=80", V4)
    with client(pods) as one:
        assert " 404 " in one.upgrade(pods, CAT.replace("talker", "nobody"), V4)


GARBAGE = {
    "headers that are not compressed": struct.pack(">II", 1 << 31 | 3 << 16 | 1, 200) + b"\xff" * 200,
    "another version": struct.pack(">II", 1 << 31 | 2 << 16 | 1, 0),
    "a frame of 16 MB": struct.pack(">II", 3, 0xFFFFFF),
    "half a frame": b"GET / HTTP",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_what_is_not_spdy_ends_the_connection(
    pods: RunningApi, garbage: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spdy_sockets, "_STREAM_SECONDS", 0.5)
    for streams in ((), ("error", "stdin", "stdout")):
        with client(pods) as one:
            one.upgrade(pods, CAT, V4)
            one.open(*streams)
            one.socket.sendall(garbage)
            if streams and garbage == GARBAGE["half a frame"]:
                continue  # the rest may still come
            for _ in iter(lambda: one.socket.recv(65536), b""):
                pass


def test_a_session_ends_with_its_account(pods: RunningApi) -> None:
    account = "/api/v1/namespaces/default/serviceaccounts/guest"
    role = {
        "metadata": {"name": "guest"},
        "rules": [{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}],
    }
    binding = {
        "metadata": {"name": "guest"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "guest"},
        "subjects": [{"kind": "ServiceAccount", "name": "guest", "namespace": "default"}],
    }
    rules = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    with pods.http() as admin, client(pods) as one:
        admin.post(account.removesuffix("/guest"), json={"metadata": {"name": "guest"}}).raise_for_status()
        admin.post(f"{rules}/roles", json=role).raise_for_status()
        admin.post(f"{rules}/rolebindings", json=binding).raise_for_status()
        answer = admin.post(f"{account}/token", json={"spec": {}}).raise_for_status()
        assert " 101 " in one.upgrade(pods, CAT, V4, token=answer.json()["status"]["token"])
        one.open("error", "stdin", "stdout")
        one.socket.sendall(one.spdy.data(3, b"x"))
        events = one.events()
        assert any(isinstance(event, DataReceived) and event.data == b"x" for event in events)
        admin.delete(account).raise_for_status()
        with suppress(ConnectionResetError):
            assert not [event for event in events if isinstance(event, DataReceived)]
