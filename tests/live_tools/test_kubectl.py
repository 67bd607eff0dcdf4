"""kubectl's modes: command lines are parsed, read-only commands change nothing, and safe mode can be rolled back."""

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
from sre_tools.live.context import LiveContext
from sre_tools.live.paging import Pages
from sre_tools.live.toolset import LiveToolset
from srearena.conductor.actions.kubectl_process import KubectlProcess
from srearena.errors import SreArenaError
from srearena.service.kubernetes import Kubernetes
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
    "set env deploy/api -n corner-shop --list",
    "label -n corner-shop deploy/api --list",
    "delete --help",
    "help rollout restart",
    "options",
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
    "delete deploy/api --dry-run=false",
    "delete deploy/api --dry-run=server --dry-run=none",
    "delete --raw /api/v1/x --dry-run=server",
    "auth --remove-extra-permissions whoami reconcile -f -",
    "rollout --recursive status undo deploy/api",
    "-n get delete deploy/api",
    "delete --help=false deploy/api",
    "create token default",
    "replace --force -f -",
]


def words(line: str) -> list[str]:
    import shlex

    return shlex.split(line)


@pytest.mark.parametrize("line", READS)
def test_commands_that_only_read_are_recognised(line: str) -> None:
    assert kubectl_modes.reads(kubectl_modes.parse(words(line)))


@pytest.mark.parametrize("line", WRITES)
def test_commands_that_change_something_are_recognised(line: str) -> None:
    found = kubectl_modes.parse(words(line))
    assert not kubectl_modes.reads(found)
    with pytest.raises(ToolError, match="only reads"):
        kubectl_modes.allow(found, "read-only")
    if found.values("raw"):
        with pytest.raises(ToolError, match="cannot be tried"):
            kubectl_modes.allow(found, "safe")
    else:
        kubectl_modes.allow(found, "safe")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "-n a delete deploy x --grace-period 0 --force --wait=false -o name",
            "get --namespace=a deploy x --ignore-not-found --output=json",
        ),
        (
            "delete pods -l app=x --all-namespaces --now --cascade=orphan",
            "get pods --selector=app=x --all-namespaces --ignore-not-found --output=json",
        ),
        ("drain worker-1 --ignore-daemonsets --timeout 5s", "get nodes worker-1 --ignore-not-found --output=json"),
        ("rollout -n a restart deploy/x", "get --namespace=a deploy/x --ignore-not-found --output=json"),
        (
            "scale -n a deploy/x --replicas 2 -oyaml",
            "scale --namespace=a deploy/x --replicas=2 --dry-run=server --output=json",
        ),
        ("run x --rm -it --image b -- sh", "run x --image=b --dry-run=server --output=json -- sh"),
        ("replace --force -f -", "apply --filename=- --dry-run=server --output=json"),
        ("auth reconcile -f -", "auth reconcile --filename=- --dry-run=client --output=json"),
    ],
)
def test_the_preview_of_a_change_uses_the_same_arguments(line: str, shown: str) -> None:
    assert kubectl_modes.preview(kubectl_modes.parse(words(line))) == shown.split()


@pytest.mark.parametrize("line", ["exec x -- ls", "create token a", "debug x --image=b"])
def test_commands_without_known_objects_have_no_dry_run(line: str) -> None:
    found = kubectl_modes.parse(words(line))
    assert kubectl_modes.preview(found) is None and kubectl_modes.trial(found) is None


@given(st.text(max_size=300), st.integers(1, 40))
def test_pages_lose_nothing(text: str, size: int) -> None:
    pages = Pages(size)
    page = pages.first(text)
    collected = ""
    while "\n[" in page and page.endswith('"]'):
        body, _, rest = page.rpartition("\n[")
        collected += body
        page = pages.more(rest.rpartition('cursor "')[2].removesuffix('"]'))
    assert collected + (page if page != "(nothing)" else "") == text or text == "(nothing)"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with served_episode() as found:
        yield found


@pytest.fixture
def fast_clock(served: Served) -> Iterator[None]:
    """Pods have thirty seconds to end, which a command that waits for them need not take."""
    served.episode.cluster.set_speed(20)
    yield
    served.episode.cluster.set_speed(1)


@pytest.fixture
def tools(served: Served, request: pytest.FixtureRequest) -> Iterator[LiveToolset]:
    connection = Connection(served.url, TOKEN)
    with LiveContext(connection, getattr(request, "param", "safe")) as context:
        yield LiveToolset(context)
    connection.close()


def kubectl(tools: LiveToolset, command: str, stdin: str = "") -> str:
    return tools.call("kubectl", {"command": command, "stdin": stdin})


def spec(tools: LiveToolset, what: str) -> Any:
    return json.loads(kubectl(tools, f"get {what} -n {NS} -o json"))["spec"]


def without_addresses(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if "clusterIP" not in key}


@pytest.mark.kubectl
@pytest.mark.parametrize("tools", ["read-only"], indirect=True)
def test_every_form_of_a_command_runs_and_read_only_mode_changes_nothing(tools: LiveToolset) -> None:
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
        (f"rollout -n {NS} pause deploy api", "deploy/api"),
        (f"set image deploy/api -n {NS} *=nginx:1.25", "deploy/api"),
        (f"scale deploy --all --replicas=4 -n {NS}", "deploy/web"),
        (f"scale deploy/api deploy/web --replicas 4 -n{NS}", "deploy/web"),
        ("cordon worker-1", "node/worker-1"),
        ("taint nodes worker-1 slow=disk:PreferNoSchedule", "node/worker-1"),
        (f"delete deploy,svc --all -n {NS} --cascade=foreground --timeout=50s", "deploy/web"),
    ],
)
def test_a_change_in_safe_mode_can_be_rolled_back(
    fast_clock: None, tools: LiveToolset, command: str, what: str
) -> None:
    before = spec(tools, what)
    assert "`rollback` puts it back" in kubectl(tools, command)
    try:
        assert spec(tools, what) != before
    except ToolError as gone:
        assert "NotFound" in str(gone)
    assert "rolled back" in tools.call("rollback", {})
    assert without_addresses(spec(tools, what)) == without_addresses(before)
    with pytest.raises(ToolError, match="no such change"):
        tools.call("rollback", {"change": 1})


@pytest.mark.kubectl
def test_a_controller_that_writes_meanwhile_does_not_stop_a_rollback(
    tools: LiveToolset, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = spec(tools, "deploy/api")
    assert "change 1" in kubectl(tools, f"scale deploy/api --replicas=5 -n {NS}")
    replace, writers = Kubernetes.replace, iter(["first", "second"])

    def late(self: Kubernetes, obj: Any, *where: Any, **how: Any) -> Any:
        if other := next(writers, None):
            self.patch("deployments", "api", {"metadata": {"annotations": {"writer": other}}}, NS)
        return replace(self, obj, *where, **how)

    monkeypatch.setattr(Kubernetes, "replace", late)
    assert "as before" in tools.call("rollback", {})
    assert spec(tools, "deploy/api") == before


@pytest.mark.kubectl
def test_a_created_object_is_deleted_by_a_rollback(tools: LiveToolset) -> None:
    manifest = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: fresh, namespace: {NS}}}\ndata: {{a: b}}\n"
    assert "change 1" in kubectl(tools, "apply -f -", manifest)
    assert "fresh" in kubectl(tools, f"get cm -n {NS}")
    assert "it was not there before" in tools.call("rollback", {"change": 1})
    with pytest.raises(ToolError, match="NotFound"):
        kubectl(tools, f"get cm fresh -n {NS}")


@pytest.mark.kubectl
def test_each_of_many_objects_is_rolled_back(tools: LiveToolset) -> None:
    def manifest(value: str) -> str:
        one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: SHOP}\ndata: {a: VALUE}\n"
        return "---\n".join(
            one.replace("NAME", name).replace("SHOP", NS).replace("VALUE", value) for name in ("one", "two")
        )

    def stored_values() -> str:
        return kubectl(tools, f"get cm -n {NS} one two --ignore-not-found -o jsonpath={{.items[*].data.a}}")

    assert "change 1" in kubectl(tools, "create -f -", manifest("old"))
    assert "change 2" in tools.call("shell", {"command": f"kubectl apply -f - <<EOF\n{manifest('new')}\nEOF"})
    assert "change 3" in kubectl(tools, "replace --force -f -", manifest("forced"))
    assert "change 4" in kubectl(tools, "delete -f - --wait=false", manifest("forced"))
    assert stored_values() == "(nothing)"
    for expected in ("forced forced", "new new", "old old", "(nothing)"):
        tools.call("rollback", {})
        assert stored_values() == expected
    with pytest.raises(ToolError, match="no such change"):
        tools.call("rollback", {})


@pytest.mark.kubectl
def test_input_reaches_commands_and_a_pod_may_run_once(tools: LiveToolset) -> None:
    tools.call("wait", {"seconds": 120})  # other tests have just replaced the pods
    assert kubectl(tools, f"exec -it -n {NS} deploy/api -- cat", "from here").startswith("from here")
    printed = kubectl(tools, f"run once -n {NS} --rm -it --restart=Never --image=busybox:1.36 -- echo hello")
    assert "hello" in printed and "deleted" in printed
    manifest = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: other, namespace: {NS}}}\n"
    assert "+  name: other" in kubectl(tools, "diff -f -", manifest)
    assert "+  name: other" in tools.call("shell", {"command": f"kubectl diff -f - <<EOF\n{manifest}\nEOF"})


@pytest.mark.kubectl
def test_a_change_that_the_server_would_refuse_is_not_made(tools: LiveToolset) -> None:
    with pytest.raises(ToolError, match="nothing was changed"):
        kubectl(tools, f'patch deploy api -n {NS} -p \'{{"spec":{{"replicas":-1}}}}\'')
    with pytest.raises(ToolError, match="--raw cannot be tried"):
        kubectl(tools, f"delete --raw /apis/apps/v1/namespaces/{NS}/deployments/api")
    for line, why in (("shop list", "plug-ins do not run here"), ("create shop", "plug-ins do not run here")):
        with pytest.raises(ToolError, match=why):
            kubectl(tools, line)
    assert tools.call("changes", {}).startswith("(nothing")


@pytest.mark.kubectl
@pytest.mark.parametrize("tools", ["full"], indirect=True)
def test_full_mode_executes_in_pods(tools: LiveToolset) -> None:
    tools.call("wait", {"seconds": 120})  # other tests have just replaced the pods
    assert kubectl(tools, f"exec -i -n {NS} deploy/api -- echo hello").strip() == "hello"
    assert "rollback" not in tools.tools


@pytest.mark.kubectl
def test_a_command_that_would_never_end_is_stopped(served: Served) -> None:
    process = KubectlProcess(served.episode.kubeconfig, timeout=5)
    try:
        status, printed = process.run(["get", "namespaces", "--watch"])
    finally:
        process.close()
    assert status == 124 and NS in printed and "stopped after 5 s" in printed


def test_an_address_without_an_episode_is_reported() -> None:
    with pytest.raises(SreArenaError, match="does not answer"):
        Connection("http://127.0.0.1:9", "x")
