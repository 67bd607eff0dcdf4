"""kubectl logs, by its HTTP parameters and by kubectl."""

from __future__ import annotations

import re
import subprocess

import httpx
import pytest

from tests.clusters import RunningApi

LOG = "/api/v1/namespaces/default/pods/talker/log"


def _log(api: RunningApi, query: str = "container=main") -> httpx.Response:
    with api.http() as client:
        return client.get(f"{LOG}?{query}")


def test_everything_a_container_said(pods: RunningApi) -> None:
    reply = _log(pods)
    assert reply.headers["content-type"] == "text/plain"
    lines = reply.text.splitlines()
    assert lines[:3] == ["line 0", "line 1", "line 2"] and len(lines) > 20


def test_a_pod_with_several_containers_must_be_told_which(pods: RunningApi) -> None:
    reply = _log(pods, "")
    assert reply.status_code == 400
    assert reply.json()["message"] == ("a container name must be specified for pod talker, choose one of: [main web]")
    assert _log(pods, "container=ghost").json()["message"] == "container ghost is not valid for pod talker"


def test_tail_limit_since_and_timestamps(pods: RunningApi) -> None:
    everything = _log(pods).text.splitlines()
    tail = _log(pods, "container=main&tailLines=2").text.splitlines()
    assert len(tail) == 2 and int(tail[0].split()[1]) + 1 == int(tail[1].split()[1]) >= len(everything) - 1
    assert _log(pods, "container=main&tailLines=0").text == ""
    assert _log(pods, "container=main&limitBytes=9").text == "line 0\nli"
    recent = _log(pods, "container=main&sinceSeconds=5").text.splitlines()
    assert 3 <= len(recent) <= 7
    stamped = _log(pods, "container=main&timestamps=true").text.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z line 0", stamped[0])
    tenth = stamped[10].split()[0]
    since = _log(pods, f"container=main&sinceTime={tenth}").text.splitlines()
    assert since[0] in ("line 10", "line 11")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=1&sinceTime=2024-01-01T00:00:00Z", "at most one of `sinceTime` or `sinceSeconds`"),
        ("stream=Stdin", "stream: Unsupported value"),
        ("stream=Stdout&tailLines=1", "mutually exclusive"),
    ],
)
def test_options_are_checked(pods: RunningApi, query: str, text: str) -> None:
    reply = _log(pods, f"container=main&{query}")
    assert reply.status_code == 422
    assert text in reply.json()["message"]
    assert reply.json()["message"].startswith('PodLogOptions "talker" is invalid')


def test_following_shows_new_lines_until_the_container_ends(pods: RunningApi) -> None:
    with pods.http() as client, client.stream("GET", f"{LOG}?container=main&follow=true&tailLines=1") as reply:
        lines = reply.iter_lines()
        first = int(next(lines).split()[1])
        pods.advance(3)
        assert int(next(lines).split()[1]) == first + 1
        with pods.http() as other:
            other.delete("/api/v1/namespaces/default/pods/talker").raise_for_status()
        pods.advance(10)
        assert [int(line.split()[1]) for line in lines][:1] == [first + 2], "the rest, and then the end"


def test_a_follower_that_vanishes_leaves_nothing_behind(pods: RunningApi) -> None:
    for _ in range(5):
        with pods.http() as client, client.stream("GET", f"{LOG}?container=main&follow=true") as reply:
            next(reply.iter_lines())

    async def idle() -> bool:
        import asyncio

        for _ in range(100):
            if not pods.server.busy:
                return True
            await asyncio.sleep(0.02)
        return False

    assert pods.wait(idle())


def test_a_container_that_has_not_started_says_why(pods: RunningApi) -> None:
    body = {
        "metadata": {"name": "stuck"},
        "spec": {"nodeName": "worker", "containers": [{"name": "c", "image": "no.such/image:1"}]},
    }
    with pods.http() as client:
        path = "/api/v1/namespaces/default/pods"
        client.post(
            path, json={**body, "metadata": {"name": "homeless"}, "spec": {"containers": body["spec"]["containers"]}}
        )
        assert client.get(f"{path}/homeless/log").status_code == 204, "nobody has run it yet"
        client.post(path, json=body).raise_for_status()
        pods.advance(30)
        reply = client.get(f"{path}/stuck/log")
        assert reply.status_code == 400
        assert reply.json()["message"].removeprefix('container "c" in pod "stuck" is waiting to start: ') in (
            "image can't be pulled",
            "trying and failing to pull image",
        )
        assert client.get(f"{path}/ghost/log").status_code == 404


def test_the_log_of_the_attempt_before(pods: RunningApi) -> None:
    missing = _log(pods, "container=main&previous=true")
    assert missing.json()["message"] == 'previous terminated container "main" in pod "talker" not found'
    body = {
        "metadata": {"name": "crasher"},
        "spec": {
            "nodeName": "worker",
            "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", "echo dying; exit 3"]}],
        },
    }
    with pods.http() as client:
        client.post("/api/v1/namespaces/default/pods", json=body).raise_for_status()
        pods.advance(60)
        for query in ("", "?previous=true"):
            assert client.get(f"/api/v1/namespaces/default/pods/crasher/log{query}").text == "dying\n"


def test_kubectl_logs(pods: RunningApi) -> None:
    done = pods.kubectl("logs", "talker", "--tail=2")
    assert len(done.stdout.splitlines()) == 2
    assert 'Defaulted container "main" out of: main, web' in done.stderr
    labelled = pods.kubectl("logs", "-l", "app=talker", "--all-containers", "--prefix", "--tail=-1").stdout
    assert "[pod/talker/main] line 0\n" in labelled and "[pod/talker/web] " in labelled
    refused = pods.kubectl("logs", "talker", "-c", "main", "--previous", check=False)
    assert "Error from server (BadRequest): previous terminated container" in refused.stderr
    command = ["kubectl", f"--kubeconfig={pods.kubeconfig}", "logs", "-f", "talker", "-c", "main", "--tail=1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("line ")
        pods.advance(2)
        assert process.stdout.readline().startswith("line ")
        process.terminate()
