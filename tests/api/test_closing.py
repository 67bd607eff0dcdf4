"""A cluster in the caller's process that is closed leaves no connection open, whatever state its clients are in."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.cluster.embedded.api.application import Application
from srearena.cluster.embedded.api.requests import Receive, Send
from srearena.cluster.embedded.clock import Clock
from srearena.service.kubeconfig import read_kubeconfig


def _connect(url: str) -> socket.socket:
    address = urlsplit(url)
    connection = socket.create_connection((address.hostname or "", address.port or 0))
    connection.settimeout(10)
    return connection


def _silent(cluster: Cluster) -> socket.socket:
    """A client that never starts its TLS handshake."""
    return _connect(read_kubeconfig(cluster.kubeconfig).server)


def _half_a_handshake(cluster: Cluster) -> socket.socket:
    connection = _silent(cluster)
    connection.sendall(b"\x16\x03\x01\x02\x00\x01")
    return connection


def _no_tls(cluster: Cluster) -> socket.socket:
    connection = _silent(cluster)
    connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
    return connection


def _half_a_query(cluster: Cluster) -> socket.socket:
    connection = _connect(cluster.telemetry.prometheus)
    connection.sendall(b"GET /api/v1/query?query=1 HTTP/1.1\r\n")
    return connection


@pytest.mark.parametrize("client", [_silent, _half_a_handshake, _no_tls, _half_a_query])
@pytest.mark.daily_cases(2)
def test_connections_are_closed_with_the_cluster(client: Callable[[Cluster], socket.socket]) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", ResourceWarning)
        with start_embedded(in_process=True) as cluster:
            connection = client(cluster)
            cluster.wait(1)  # the loop has accepted the connection
        gc.collect()
        with connection:
            while connection.recv(1000):
                pass
    assert not [str(warning.message) for warning in found if "socket" in str(warning.message).lower()]


class _Streaming(Application):
    """An application whose every request is answered for ever."""

    def __init__(self) -> None:
        """It needs no cluster."""

    async def _guarded(self, *arguments: object) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize("kind", ["websocket", "http"])
def test_a_request_that_is_cancelled_ends_without_an_error(kind: str) -> None:
    """A stop of the server cancels the tasks of open streams and watches; what they raise would be logged."""

    async def cancelled_stream() -> bool:
        call = _Streaming()({"type": kind}, cast(Receive, None), cast(Send, None))
        task = asyncio.ensure_future(call)
        await asyncio.sleep(0)
        task.cancel()
        await task
        return not task.cancelled()

    assert asyncio.run(cancelled_stream())


def _clocks() -> set[int]:
    """Each world has one; other tests of this process may have worlds, too."""
    gc.collect()
    return {id(one) for one in gc.get_objects() if isinstance(one, Clock)}


def test_nothing_keeps_the_world_of_a_closed_cluster() -> None:
    """A process that plays one episode after the other, as trainers and these tests do, does not grow with them."""
    before = _clocks()
    with start_embedded(in_process=True) as cluster:
        cluster.wait(60)
        own = _clocks() - before
        assert len(own) == 1
    del cluster
    assert not own & _clocks()
