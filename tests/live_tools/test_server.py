"""A real MCP client, from the official SDK, drives every live tool over both transports, repairs, and submits."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.live_tools.environment import TOKEN, Served, served_episode

pytestmark = pytest.mark.kubectl
NAMESPACE = "corner-shop"
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("task", {}, "Stage 1 of 3"),
    ("kubectl", {"command": f"get deployments -n {NAMESPACE}"}, "store"),
    (
        "kubectl",
        {"command": ["kubectl", "-n", NAMESPACE, "get", "deploy", "store", "-o=name"]},
        "deployment.apps/store",
    ),
    ("shell", {"command": f"kubectl get deploy -n {NAMESPACE} | grep store | wc -l; sleep 1"}, "1"),
    ("prometheus_query", {"query": "sum(kube_node_info)"}, "} "),
    ("prometheus_query_range", {"query": "sum(up)", "minutes": 5}, "{} "),
    ("prometheus_labels", {}, "namespace"),
    ("prometheus_labels", {"label": "__name__", "contains": "container_cpu"}, "container_cpu_usage_seconds_total"),
    ("prometheus_alerts", {}, ""),
    ("loki_query", {"query": '{container="coredns"}', "limit": 5}, "coredns"),
    ("loki_query", {"query": 'sum(count_over_time({namespace="kube-system"}[5m]))'}, "{} "),
    ("loki_labels", {}, "container"),
    ("loki_labels", {"label": "namespace"}, NAMESPACE),
    ("jaeger_services", {}, ""),
    ("jaeger_operations", {"service": "api"}, ""),
    ("jaeger_traces", {"service": "api", "limit": 2}, ""),
    ("jaeger_dependencies", {}, ""),
    ("changes", {}, "nothing was changed"),
    ("wait", {"seconds": 5}, "5 seconds have passed"),
    ("alert_summary", {}, "total_count"),
    ("alert_analysis", {}, "total_count"),
    ("event_analysis", {}, "total_count"),
    ("log_analysis", {}, "total_count"),
    ("get_metric_anomalies", {"k8_object_name": "Service/api"}, "total_count"),
    ("metric_analysis", {"object_pattern": "pod/api-*"}, "api-"),
    ("get_trace_error_tree", {}, "total_count"),
    ("build_topology", {}, "store"),
    ("topology_analysis", {"entity": "Service/api"}, "api"),
    ("k8s_spec_change_analysis", {}, "total_count"),
    ("get_k8_spec", {"k8_object_name": "Deployment/store"}, "replicas"),
    ("get_context_contract", {"k8_object": "Deployment/store"}, "store"),
    ("incident_timeline", {}, "total_count"),
    ("change_impact", {}, "total_count"),
]
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("kubectl", {"command": "edit deployment store"}, "there is no terminal"),
    ("kubectl", {"command": "get pods --kubeconfig=/etc/passwd"}, "it refers to this machine"),
    ("kubectl", {"command": "get 'pods"}, "cannot be read"),
    ("kubectl", {"command": "get pods; rm -rf /"}, "Error"),
    ("kubectl", {}, "command: field required"),
    ("shell", {"command": "cat /etc/passwd"}, "does not run here"),
    ("shell", {"command": "kubectl get pods > /tmp/x"}, "is not supported"),
    ("prometheus_query", {"query": "sum("}, "prometheus responded 400"),
    ("loki_query", {"query": "{"}, "loki responded 400"),
    ("jaeger_traces", {}, "either service or trace_id"),
    ("jaeger_traces", {"trace_id": "../../etc"}, "jaeger responded"),
    ("more", {"cursor": "9:9"}, "not known"),
    ("kubectll", {}, "did you mean kubectl"),
    ("submit", {"solution": 5}, ""),
]


def _text(result: Any) -> str:
    return str(result.content[0].text)


async def _work(client: Client) -> None:
    """Call every tool with good and bad arguments, then repair the shop. No tool may be left out."""
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    answered: set[str] = set()

    async def ask(name: str, **arguments: Any) -> str:
        result = await client.call_tool(name, arguments)
        assert not result.is_error, (name, arguments, _text(result)[:500])
        answered.add(name)
        return _text(result)

    assert listed["prometheus_query"].annotations.read_only_hint is True  # type: ignore[union-attr]
    assert listed["kubectl"].annotations.read_only_hint is False  # type: ignore[union-attr]
    for name, arguments, expected in CALLS:
        reply = await ask(name, **arguments)
        assert expected in reply, (name, arguments, reply[:500])
    for name, arguments, expected in WRONG:
        result = await client.call_tool(name, arguments)
        assert result.is_error and expected in _text(result), (name, arguments, _text(result)[:500])
    pages = [await ask("kubectl", command="get pods -A -o json")]
    while "call `more` with cursor" in pages[-1].rpartition("\n")[2]:
        cursor = pages[-1].rpartition('cursor "')[2].rstrip('"]')
        pages.append(await ask("more", cursor=cursor))
    whole = "".join(page.rpartition("\n[")[0] for page in pages[:-1]) + pages[-1]
    assert len(pages) > 1 and len(json.loads(whole)["items"]) > 3
    assert "Stage 2" in await ask("submit", solution="Yes")
    assert "Stage 3" in await ask("submit", solution=["store"])
    assert "change 1" in await ask("kubectl", command=f"scale deploy/api --replicas=0 -n {NAMESPACE}")
    assert "as before" in await ask("rollback")
    assert "change 2" in await ask("kubectl", command=f"scale deploy/store --replicas=1 -n {NAMESPACE}")
    await ask("wait", seconds=60)
    assert "done" in await ask("submit")
    assert answered == set(listed)


def _check_record(served: Served) -> None:
    assert served.episode.grade().outcome == "pass"
    calls = [entry for entry in served.episode.session.history if entry["what"] == "tool call"]
    assert [call["tool"] for call in calls][: len(CALLS)] == [name for name, _, _ in CALLS]
    assert any("error" in call for call in calls) and all("seconds" in call for call in calls)


def test_every_tool_works_over_stdio() -> None:
    with served_episode() as served:
        command = served.command("--mode", "safe")
        parameters = StdioServerParameters(command=command[0], args=command[1:], env=served.environment)

        async def talk() -> None:
            async with Client(stdio_client(parameters)) as client:
                await _work(client)

        anyio.run(talk)
        _check_record(served)


@contextmanager
def over_http(served: Served, *words: str) -> Iterator[dict[str, Any]]:
    """The announcement that the server prints."""
    with subprocess.Popen(
        served.command("--http", *words), env=served.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()
            process.wait(10)


def test_every_tool_works_over_http_with_the_token() -> None:
    with served_episode() as served, over_http(served) as announced:

        async def talk() -> None:
            async with (
                httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as http,
                Client(streamable_http_client(announced["url"], http_client=http)) as client,
            ):
                await _work(client)

        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert httpx2.post(announced["url"], json=ping).status_code == 401
        assert httpx2.post(announced["url"], json=ping, headers={"authorization": "Bearer no"}).status_code == 401
        anyio.run(talk)
        _check_record(served)


def test_without_an_episode_it_prints_one_line() -> None:
    done = subprocess.run(
        Served.command(None, "--mode", "full"),  # type: ignore[arg-type]
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stderr.startswith("Error: which episode?") and done.stderr.count("\n") == 1
