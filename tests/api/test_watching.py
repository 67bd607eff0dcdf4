"""watch: every change in order, from where the client left off, and nothing left behind when it goes."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from srearena.cluster.embedded.api import watching
from srearena.cluster.embedded.recorder import Recorder
from srearena.cluster.embedded.registry.identity import component
from tests.clusters import SUPERUSER, RunningApi

HOME = "/api/v1/namespaces/default/configmaps"


class Watch:
    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.iter_lines()

    def next(self) -> tuple[str, dict[str, Any]]:
        event = json.loads(next(self._lines))
        return event["type"], event["object"]

    def names(self, count: int) -> list[tuple[str, str]]:
        return [(kind, obj["metadata"]["name"]) for kind, obj in (self.next() for _ in range(count))]

    def ends(self) -> bool:
        return next(self._lines, None) is None


@contextmanager
def watch(http: httpx.Client, query: str = "", path: str = HOME, **headers: str) -> Iterator[Watch]:
    with http.stream("GET", f"{path}?watch=true&{query}", headers=headers) as response:
        assert response.status_code == 200, response.read()
        yield Watch(response)


def _put(http: httpx.Client, name: str, **labels: str) -> dict[str, Any]:
    body = {"metadata": {"name": name, "labels": labels}}
    reply = http.put(f"{HOME}/{name}", json=body)
    if reply.status_code == 404:
        reply = http.post(HOME, json=body)
    reply.raise_for_status()
    return reply.json()


def test_a_watch_without_version_begins_with_what_is_there(http: httpx.Client) -> None:
    _put(http, "a")
    with watch(http) as seen:
        assert seen.names(1) == [("ADDED", "a")]
        _put(http, "b")
        _put(http, "b", x="y")
        http.delete(f"{HOME}/a").raise_for_status()
        assert seen.names(3) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]


def test_a_watch_goes_on_exactly_where_a_list_ended(http: httpx.Client) -> None:
    _put(http, "a")
    version = http.get(HOME).json()["metadata"]["resourceVersion"]
    _put(http, "b")
    http.delete(f"{HOME}/a").raise_for_status()
    with watch(http, f"resourceVersion={version}") as seen:
        assert seen.names(2) == [("ADDED", "b"), ("DELETED", "a")]
        _put(http, "c")
        assert seen.names(1) == [("ADDED", "c")]


def test_versions_only_ever_grow(http: httpx.Client) -> None:
    with watch(http) as seen:
        for number in range(5):
            _put(http, "a", n=str(number))
        versions = [int(seen.next()[1]["metadata"]["resourceVersion"]) for _ in range(5)]
    assert versions == sorted(set(versions))


def test_an_object_that_leaves_the_selection_is_told_as_deleted(http: httpx.Client) -> None:
    with watch(http, "labelSelector=app%3Dweb") as seen:
        _put(http, "a", app="db")
        _put(http, "a", app="web")
        _put(http, "a", app="web", tier="front")
        changed = _put(http, "a", app="db")
        _put(http, "a", app="cache")
        _put(http, "a", app="web")
        http.delete(f"{HOME}/a").raise_for_status()
        kinds = [seen.next() for _ in range(5)]
    assert [kind for kind, _ in kinds] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    left = kinds[2][1]["metadata"]
    assert left["labels"]["app"] == "web", "its last state inside the selection"
    assert left["resourceVersion"] == changed["metadata"]["resourceVersion"], "at the version at which it left"


def test_only_the_namespace_and_name_asked_for(http: httpx.Client) -> None:
    elsewhere = "/api/v1/namespaces/kube-system/configmaps"
    with (
        watch(http, "fieldSelector=metadata.name%3Db") as one,
        watch(http) as here,
        watch(http, path="/api/v1/configmaps") as everywhere,
        watch(http, path="/api/v1/watch/namespaces/default/configmaps/b") as old_style,
    ):
        http.post(elsewhere, json={"metadata": {"name": "b"}}).raise_for_status()
        _put(http, "a")
        _put(http, "b")
        assert one.names(1) == old_style.names(1) == [("ADDED", "b")]
        assert here.names(2) == [("ADDED", "a"), ("ADDED", "b")]
        assert everywhere.names(3) == [("ADDED", "b"), ("ADDED", "a"), ("ADDED", "b")]


def test_initial_events_end_with_a_bookmark_that_says_so(http: httpx.Client) -> None:
    _put(http, "a")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    with watch(http, query) as seen:
        assert seen.names(1) == [("ADDED", "a")]
        kind, obj = seen.next()
        assert kind == "BOOKMARK" and obj["kind"] == "ConfigMap"
        assert obj["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        _put(http, "b")
        assert seen.names(1) == [("ADDED", "b")]
    reply = http.get(f"{HOME}?watch=true&sendInitialEvents=true")
    assert reply.status_code == 422
    assert "requires setting resourceVersionMatch to NotOlderThan" in reply.json()["message"]


def test_bookmarks_come_now_and_then(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BOOKMARK_SECONDS", 0.05)
    _put(http, "a")
    version = http.get(HOME).json()["metadata"]["resourceVersion"]
    http.post("/api/v1/namespaces/default/secrets", json={"metadata": {"name": "s"}}).raise_for_status()
    with watch(http, f"resourceVersion={version}&allowWatchBookmarks=true") as seen:
        kind, obj = seen.next()
    assert kind == "BOOKMARK" and int(obj["metadata"]["resourceVersion"]) > int(version)


def test_a_watch_from_too_long_ago_is_told_to_list_again(http: httpx.Client, api: RunningApi) -> None:
    _put(http, "a")

    def churn() -> None:
        client = api.world.component_client("test")
        for number in range(1200):
            client.modify("configmaps", "default", "a", lambda obj, n=number: obj.__setitem__("data", {"n": str(n)}))

    api.call(churn)
    with watch(http, "resourceVersion=2") as seen:
        kind, status = seen.next()
        assert kind == "ERROR"
        assert (status["code"], status["reason"]) == (410, "Expired")
        assert status["message"].startswith("too old resource version: 2 (")
        assert seen.ends()
    assert http.get(f"{HOME}?watch=true&resourceVersion=99999999").status_code == 504


def test_a_watch_ends_when_its_time_is_up(http: httpx.Client) -> None:
    with watch(http, "timeoutSeconds=1") as seen:
        assert seen.ends()


def test_a_watch_of_tables_sends_the_columns_once(http: httpx.Client) -> None:
    with watch(http, accept="application/json;as=Table;v=v1;g=meta.k8s.io") as seen:
        _put(http, "a")
        _put(http, "b")
        first, second = seen.next()[1], seen.next()[1]
    assert first["kind"] == second["kind"] == "Table"
    assert first["columnDefinitions"] and not second["columnDefinitions"]
    assert second["rows"][0]["cells"][0] == "b"


def test_events_are_converted_for_who_watches_the_other_version(http: httpx.Client, api: RunningApi) -> None:
    namespace = http.get("/api/v1/namespaces/default").json()
    with watch(http, path="/apis/events.k8s.io/v1/events") as seen:
        api.call(lambda: Recorder(api.world, "tester", component("tester")).event(namespace, "Normal", "Odd", "hm"))
        assert seen.next()[1]["note"] == "hm"


def _idle(api: RunningApi) -> bool:
    return api.watcher_count == 0 and not api.server.busy


def _settles(api: RunningApi) -> bool:
    async def wait() -> bool:
        for _ in range(200):
            if _idle(api):
                return True
            await asyncio.sleep(0.02)
        return False

    return api.wait(wait())


def test_watchers_that_vanish_leave_nothing_behind(api: RunningApi, http: httpx.Client) -> None:
    for _ in range(20):
        with watch(http) as seen:
            _put(http, "a", n=str(_))
            seen.next()
    assert _settles(api)


async def _open(api: RunningApi, path: str, token: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context(cafile=str(api.ca))
    reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port, ssl=context)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


def test_a_thousand_watches_hear_of_a_change_and_are_forgotten(api: RunningApi, http: httpx.Client) -> None:
    token = api.call(lambda: api.server.credentials.token(SUPERUSER))

    async def crowd() -> None:
        watches = []
        for _ in range(20):
            watches += await asyncio.gather(*(_open(api, f"{HOME}?watch=1", token) for _ in range(50)))
        assert api.watcher_count == 1000
        await asyncio.to_thread(_put, http, "news")

        async def hears(reader: asyncio.StreamReader) -> None:
            while b'"news"' not in await reader.readline():
                continue

        await asyncio.gather(*(hears(reader) for reader, _ in watches))
        for _, writer in watches:
            writer.transport.abort()

    asyncio.run(crowd())
    assert _settles(api)


def test_a_client_that_does_not_read_is_dropped_instead_of_remembered(
    api: RunningApi, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "QUEUE_LIMIT", 50)
    token = api.call(lambda: api.server.credentials.token(SUPERUSER))

    async def stall() -> None:
        _, writer = await _open(api, f"{HOME}?watch=1", token)
        writer.transport.pause_reading()  # type: ignore[attr-defined]

        def flood() -> None:
            client = api.world.component_client("test")
            for number in range(300):
                client.modify(
                    "configmaps", "default", "a", lambda obj, n=number: obj.__setitem__("data", {"n": big + str(n)})
                )

        big = "x" * 100_000
        await asyncio.to_thread(_put, http, "a")
        for _ in range(3):
            await asyncio.to_thread(api.call, flood)
        assert await asyncio.to_thread(_settles, api)
        writer.transport.abort()

    asyncio.run(stall())
