"""A bug in one thread of one program is that program's trouble: the cluster lives on."""

from __future__ import annotations

import logging

import pytest

from srearena.cluster.embedded.machine.networking.reachability import HttpResult, Outcome
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from tests.containers.machine import Machine


def test_a_handler_that_fails_resets_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    process = machine.idle().main
    assert process is not None

    async def broken(request: HttpRequest) -> HttpResponse:
        raise KeyError(request.path)

    machine.namespace.listen(process, 8080, http=broken)
    results: list[HttpResult] = []

    async def ask() -> None:
        results.append(await machine.network.http("127.0.0.1", 8080, HttpRequest("GET", "/")))

    machine.clock.spawn(ask())
    with caplog.at_level(logging.CRITICAL):
        machine.clock.advance(5)
    assert [result.outcome for result in results] == [Outcome.RESET]
    assert not process.done.is_set
