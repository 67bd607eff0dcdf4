"""Writes that must wait for somebody outside, such as a webhook."""

from __future__ import annotations

import asyncio
import threading

import httpx

from srearena.cluster.embedded.clock import Signal
from srearena.cluster.embedded.registry.admission.chain import AdmissionPending, Attributes, Plugin
from srearena.cluster.embedded.registry.errors import Forbidden
from tests.clusters import RunningApi

HOME = "/api/v1/namespaces/default/configmaps"


class Oracle(Plugin):
    """Takes three virtual seconds to make up its mind about config maps."""

    def __init__(self, api: RunningApi) -> None:
        self._clock = api.world.clock
        self._answers: dict[str, Signal[bool]] = {}
        self.asked = 0

    def admit(self, attributes: Attributes) -> None:
        if not attributes.is_for("configmaps") or attributes.obj is None:
            return
        name = attributes.obj["metadata"]["name"]
        if name not in self._answers:
            self.asked += 1
            answer = self._answers[name] = Signal(self._clock)
            self._clock.after(3, answer.set, name != "bad")
        answer = self._answers[name]
        if not answer.is_set:
            raise AdmissionPending(answer)
        if not answer.value:
            raise Forbidden("configmaps", name, "the oracle has spoken")
        attributes.obj.setdefault("metadata", {}).setdefault("labels", {})["blessed"] = "yes"


def test_a_write_waits_in_virtual_time_while_others_are_served(api: RunningApi, http: httpx.Client) -> None:
    oracle = Oracle(api)
    api.call(lambda: api.world.registry.admission.plugins.append(oracle))
    replies: dict[str, httpx.Response] = {}

    def write(name: str) -> None:
        with api.http() as client:
            replies[name] = client.post(HOME, json={"metadata": {"name": name}, "data": {"a": "b"}})

    threads = [threading.Thread(target=write, args=(name,)) for name in ("good", "bad")]
    for thread in threads:
        thread.start()

    async def both_asked() -> None:
        while oracle.asked < 2:
            await asyncio.sleep(0.01)

    api.wait(both_asked())
    assert http.get(HOME).json()["items"] == [], "nothing is stored while the answer is out"
    api.advance(4)
    for thread in threads:
        thread.join(timeout=30)
    assert replies["good"].status_code == 201
    assert replies["good"].json()["metadata"]["labels"] == {"blessed": "yes"}
    assert replies["bad"].status_code == 403
    assert replies["bad"].json()["message"] == 'configmaps "bad" is forbidden: the oracle has spoken'
    assert oracle.asked == 2
