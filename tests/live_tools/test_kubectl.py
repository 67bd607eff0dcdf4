"""kubectl's modes: every spelling is understood, readers change nothing, and what safe mode changes can be put back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sre_tools.errors import ToolError
from sre_tools.live import kubectl_modes
from sre_tools.live.connection import Connection
from sre_tools.live.paging import Pages
from sre_tools.live.server import toolset
from sre_tools.live.toolset import Toolset
from srearena.errors import SreArenaError
from tests.live_tools.environment import TOKEN, Served, served_episode

NS = "corner-shop"
READS = [
    "get pods",
    "-n kube-system get pods -o wide",
    "--namespace=kube-system get po -owide --no-headers",
    "get --raw /version",
    "--request-timeout 5s -n kube-system get cm coredns -oyaml",
    "logs -n kube-system -l k8s-app=kube-dns --tail=5",
    "logs deploy/api -n corner-shop --since=1m",
    "describe deploy api -n corner-shop",
    "rollout status deployment/api -n corner-shop --timeout=20s",
    "rollout -n corner-shop history deployment api",
    "auth can-i get pods",
    "top nodes",
    "events -n corner-shop",
    "explain deployment.spec.replicas",
    "api-resources --namespaced=true -o name",
    "get deploy,svc -n corner-shop -l app=api",
    "get pods -A --field-selector status.phase=Running -o jsonpath='{.items[*].metadata.name}'",
    "wait deploy/api -n corner-shop --for=condition=Available --timeout=20s",
    "version -o json",
    "scale deploy/api -n corner-shop --replicas=3 --dry-run=server",
]
WRITES = [
    "scale deployment api --replicas=2 -n corner-shop",
    "-n corner-shop delete deploy/api",
    "rollout restart deploy/api -n corner-shop",
    "rollout -n corner-shop undo deploy/api",
    "exec -n corner-shop deploy/api -- ls",
    "apply -f -",
    "cordon worker-1",
    "auth reconcile -f -",
    "run x --image=busybox:1.36",
    "set image deploy/api api=x:1 --dry-run=none",
    "--v=2 patch svc api -p '{}'",
]


def words(line: str) -> list[str]:
    import shlex

    return shlex.split(line)


@pytest.mark.parametrize("line", READS)
def test_what_only_reads_is_known(line: str) -> None:
    assert kubectl_modes.parse(words(line)).reads


@pytest.mark.parametrize("line", WRITES)
def test_what_changes_something_is_known(line: str) -> None:
    found = kubectl_modes.parse(words(line))
    assert not found.reads
    with pytest.raises(ToolError, match="only reads"):
        kubectl_modes.allow(found, "read-only")
    kubectl_modes.allow(found, "safe")


def test_the_objects_of_a_deletion_are_asked_for_with_the_same_words() -> None:
    line = kubectl_modes.parse(words("-n a delete deploy x --grace-period 0 --force --wait=false -o name"))
    assert kubectl_modes.preview(line) == ["get", "-n", "a", "deploy", "x", "-o", "json"]
    line = kubectl_modes.parse(words("delete pods -l app=x --all-namespaces --now --cascade=orphan"))
    assert kubectl_modes.preview(line) == ["get", "pods", "-l", "app=x", "--all-namespaces", "-o", "json"]
    line = kubectl_modes.parse(words("drain worker-1 --ignore-daemonsets --timeout 5s"))
    assert kubectl_modes.preview(line) == ["get", "nodes", "worker-1", "-o", "json"]


@given(st.text(max_size=300), st.integers(1, 40))
def test_pages_lose_nothing(text: str, size: int) -> None:
    pages = Pages(size)
    page = pages.first(text)
    seen = ""
    while "\n[" in page and page.endswith('"]'):
        body, _, rest = page.rpartition("\n[")
        seen += body
        page = pages.more(rest.rpartition('cursor "')[2].removesuffix('"]'))
    assert seen + (page if page != "(nothing)" else "") == text or text == "(nothing)"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with served_episode() as found:
        yield found


@pytest.fixture
def tools(served: Served, request: pytest.FixtureRequest) -> Iterator[Toolset]:
    connection = Connection(served.url, TOKEN)
    with toolset(connection, getattr(request, "param", "safe")) as found:
        yield found
    connection.close()


def kubectl(tools: Toolset, command: str, stdin: str = "") -> str:
    return tools.call("kubectl", {"command": command, "stdin": stdin})


def spec(tools: Toolset, what: str) -> Any:
    return json.loads(kubectl(tools, f"get {what} -n {NS} -o json"))["spec"]


@pytest.mark.kubectl
@pytest.mark.parametrize("tools", ["read-only"], indirect=True)
def test_every_spelling_runs_and_readers_change_nothing(tools: Toolset) -> None:
    for line in READS:
        assert kubectl(tools, line)
    for line in WRITES:
        with pytest.raises(ToolError, match="only reads"):
            kubectl(tools, line)
    with pytest.raises(ToolError, match="only reads"):
        tools.call("shell", {"command": f"kubectl get pods && kubectl delete deploy api -n {NS}"})
    assert "rollback" not in tools.tools


@pytest.mark.kubectl
@pytest.mark.parametrize(
    ("command", "what"),
    [
        (f"scale deploy/api --replicas=3 -n {NS}", "deploy/api"),
        (f"set env deploy/api -n {NS} COLOUR=red", "deploy/api"),
        (
            f'-n {NS} patch deploy api --type=json -p \'[{{"op":"add","path":"/spec/minReadySeconds","value":7}}]\'',
            "deploy/api",
        ),
        (f"delete svc/api -n {NS} --wait=false", "svc/api"),
        (f"delete deploy -n {NS} -l app=api", "deploy/api"),
        (f"rollout restart deploy/api -n {NS}", "deploy/api"),
    ],
)
def test_a_change_in_safe_mode_can_be_put_back(tools: Toolset, command: str, what: str) -> None:
    before = spec(tools, what)
    assert "`rollback` puts it back" in kubectl(tools, command)
    try:
        assert spec(tools, what) != before
    except ToolError as gone:
        assert "NotFound" in str(gone)
    assert "rolled back" in tools.call("rollback", {})
    after = spec(tools, what)
    assert {k: v for k, v in after.items() if "clusterIP" not in k} == {
        k: v for k, v in before.items() if "clusterIP" not in k
    }
    with pytest.raises(ToolError, match="no such change"):
        tools.call("rollback", {"change": 1})


@pytest.mark.kubectl
def test_what_was_not_there_is_gone_again(tools: Toolset) -> None:
    manifest = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: fresh, namespace: {NS}}}\ndata: {{a: b}}\n"
    assert "change 1" in kubectl(tools, "apply -f -", manifest)
    assert "fresh" in kubectl(tools, f"get cm -n {NS}")
    assert "it was not there before" in tools.call("rollback", {"change": 1})
    with pytest.raises(ToolError, match="NotFound"):
        kubectl(tools, f"get cm fresh -n {NS}")


@pytest.mark.kubectl
def test_a_change_that_the_server_would_refuse_is_not_begun(tools: Toolset) -> None:
    with pytest.raises(ToolError, match="nothing was changed"):
        kubectl(tools, f'patch deploy api -n {NS} -p \'{{"spec":{{"replicas":-1}}}}\'')
    assert tools.call("changes", {}).startswith("(nothing")


@pytest.mark.kubectl
@pytest.mark.parametrize("tools", ["full"], indirect=True)
def test_full_mode_executes_in_pods(tools: Toolset) -> None:
    tools.call("wait", {"seconds": 120})  # other tests have just replaced the pods
    assert kubectl(tools, f"exec -i -n {NS} deploy/api -- echo hello").strip() == "hello"
    assert "rollback" not in tools.tools


def test_an_address_that_is_no_episode_is_said() -> None:
    with pytest.raises(SreArenaError, match="does not answer"):
        Connection("http://127.0.0.1:9", "x")
